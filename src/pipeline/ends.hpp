// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/port_kind.hpp"
#include "io/shared_ends.hpp"
#include "io/sink.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/buffer_reservation.hpp"
#include "pipeline/chrome_trace.hpp"
#include "pipeline/outputs.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/shard_map.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace catena::runtime {

/// Starts the EAL for the PCI devices of `rx` and `tx`, which must be allowed at its start and need hugepages. Call
/// before all other code that may start the EAL. Does nothing without PCI devices. Errors: as eal::start().
Status start_eal_for(chain::PortConfig const& rx, chain::PortConfig const& tx);

/// The ends of a chain: packet memory, sources, sinks and output files. A chain that replaces a running one has the
/// same ones, and its counts begin at 0. Call order: make_pools() or add_pool() -> open_ports() -> open_outputs() ->
/// start() -> stop() -> finish(). By one thread, unless stated otherwise. `before`: of the running chain that is
/// replaced; null for a first chain.
class Ends {
 public:
  /// Of each pool; `queues` and `parts` as in memory::PacketPool::create().
  struct PoolSize {
    std::uint32_t slots = 0;
    std::uint32_t unit_packets = 0;
    std::uint32_t queues = 0;
    std::uint32_t parts = 1;
  };

  Ends() = default;
  Ends(Ends const&) = delete;
  Ends& operator=(Ends const&) = delete;

  /// Makes `number` packet pools: one, or one for each shard. With `before` they are over its slots. Errors: as
  /// memory::PacketPool::create(); FailedPrecondition if `before` has another number.
  Status make_pools(std::size_t number, PoolSize const& size, Ends const* before = nullptr);
  /// Adds a pool of another process.
  void add_pool(std::shared_ptr<memory::PacketPool> pool);
  /// Opens a source and a sink for each pool. With several pools, each gets the packets of the shard with its number by
  /// `shard_map`; precondition: DataPath::are_ends_divided. Errors: as the factories of the sources and sinks.
  Status open_ports(chain::ChainConfig const& config, RunOptions const& options, ShardMap shard_map,
                    Ends const* before = nullptr);
  /// Opens the output files. `nfs`: of the chain, which outlive this. Errors: as Outputs::open().
  Status open_outputs(chain::ChainConfig const& config, RunOptions const& options, std::vector<nf::Instance const*> nfs,
                      std::stop_token const& give_up, Ends const* before = nullptr);

  /// One, or one for each shard. Lost devices own them, too.
  std::span<const std::shared_ptr<memory::PacketPool>> pools() const { return pools_; }
  /// Whether each shard has its own pool, source and sink.
  bool are_divided() const { return pools_.size() > 1; }
  memory::PacketPool& pool_of(std::size_t shard) const { return *pools_[shard % pools_.size()]; }
  /// Of the same pool.
  BufferReservation& reserve_of(std::size_t shard) const { return *reserves_[shard % reserves_.size()]; }
  /// Slots of all pools; those in use. Any thread.
  std::uint64_t slots() const;
  std::uint64_t used_slots() const;
  /// As many as pools.
  std::span<const std::unique_ptr<io::SharedSource>> sources() const { return sources_; }
  std::span<const std::unique_ptr<io::SharedSink>> sinks() const { return sinks_; }
  Outputs& outputs() const { return *outputs_; }

  /// Starts the sources. Only without `before`.
  void start();
  /// Stops the sources. May be called repeatedly. Any thread.
  void stop();
  /// After stop(), does not close the sources, as another chain takes them over. False, with no effect on sources that
  /// have stopped: they were stopped before. Any thread.
  bool pass_on_sources();
  /// The same for sinks and output files, before finish(). Any thread.
  void pass_on_sinks();
  /// Ends the output. `is_passed_on`: another chain has it; else all buffers are flushed, and the trace of `stages` is
  /// written, if wanted. Errors: as Outputs::finish() and io::Sink::finish().
  Status finish(std::span<const StageTrace> stages, bool is_passed_on);

 private:
  std::vector<std::shared_ptr<memory::PacketPool>> pools_;
  std::vector<std::unique_ptr<BufferReservation>> reserves_;  ///< of each pool
  std::vector<std::unique_ptr<io::SharedSource>> sources_;
  std::vector<std::shared_ptr<io::Sink>> opened_sinks_;  ///< until sinks_ has them; null for a file
  std::shared_ptr<Outputs> outputs_;                     ///< shared with the next chain
  std::vector<std::unique_ptr<io::SharedSink>> sinks_;
};

}  // namespace catena::runtime
