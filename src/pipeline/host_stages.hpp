// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/histogram.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/edge_filter.hpp"
#include "pipeline/recorder.hpp"
#include "pipeline/shard_map.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/ticker.hpp"
#include "pipeline/unit_joiner.hpp"
#include "pipeline/unit_records.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

/// The stages of a chain on the CPU: rx and tx, and NFs placed there.
namespace catena::runtime {

/// Receives packets from the source. If no slot or unit is free, or downstream stages pause it, it waits and counts. If
/// the source fails, earlier packets continue through the chain, and error() gives the reason.
class RxStage final : public HostStage {
 public:
  /// `out`: destination of units. `stop`: ends this stage and all other readers of the flag; an error of the source
  /// sets it. `lines`: for the arrival of each packet; null if the chain writes no lines.
  RxStage(io::Source& source, memory::PacketPool& pool, Splitter out, std::atomic<bool>& stop,
          RecordLog* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return !sockets().empty(); }
  std::vector<int> sockets() const override { return source_->sockets(); }
  /// Drops packets refused by `filter`, which outlives this. Before the first poll.
  void filter(EdgeFilter& filter) { edge_ = &filter; }
  /// Starts receiving before the chain runs, with packet numbers from `index`. Back-pressure is off until
  /// begin_with_chain(). No packet is refused before the backlog of that time has left the queue. Before the first
  /// poll.
  void start_receiving(std::uint64_t index) {
    next_index_ = index;
    phase_ = Phase::kEarly;
  }
  /// The chain runs from here on.
  void begin_with_chain() { phase_ = phase_ == Phase::kEarly ? Phase::kBacklog : phase_; }
  /// Number of the next packet. Read after its end.
  std::uint64_t next_index() const { return next_index_; }
  /// Packets refused by the filter. Any thread.
  std::uint64_t refused() const { return edge_ == nullptr ? 0 : edge_->refused(); }
  /// OK, or why the source ended. Read after the run.
  Status const& error() const { return error_; }
  io::Source const& source() const { return *source_; }
  /// Polls that found the pool exhausted. Any thread.
  std::uint64_t starved_polls() const { return starved_polls_; }
  /// Bytes of the received packets. Any thread.
  std::uint64_t bytes() const { return bytes_; }

 private:
  enum class Phase : std::uint8_t {
    kWithChain,
    kEarly,    ///< the chain does not run yet
    kBacklog,  ///< it does, and packets from before are in the queue
    kEnded,
  };
  Progress receive(bool& is_full);
  void pass_on(memory::Unit* unit);
  void find_exhausted();

  io::Source* source_;
  memory::PacketPool* pool_;
  Splitter out_;
  UnitJoiner joiner_;
  std::atomic<bool>* stop_;
  RecordLog* lines_;
  Status error_;
  std::uint64_t next_index_ = 0;
  Phase phase_ = Phase::kWithChain;
  EdgeFilter* edge_ = nullptr;
  Counter starved_polls_;
  Counter bytes_;
};

/// Prefetching of a unit's headers before an NF on the CPU starts with it.
enum class Fetch : std::uint8_t {
  kToRead,
  kToWrite,  ///< the NF writes headers read by another NF on the CPU: they leave that core's cache at once
};

/// An NF on the CPU. `live_clock`: of the source, for Nf::tick(). `lines`: for the NF's lines; null if the chain writes
/// no lines.
class CpuStage final : public HostStage {
 public:
  CpuStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
           memory::UnitQueue& out, std::optional<io::LiveClock> live_clock = std::nullopt, RecordLog* lines = nullptr,
           Fetch fetch = Fetch::kToRead);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }  // ticks are rare

 private:
  void process(packet::Batch const& batch);

  nf::Instance* instance_;
  std::uint32_t position_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  Ticker ticker_;
  RecordLog* lines_;
  Fetch fetch_;
  std::vector<memory::Unit*> done_;   ///< pushed together
  std::vector<std::uint32_t> slots_;  ///< their slots
};

/// Between NFs with different sharding: merges units and divides them again.
class ReshardStage final : public HostStage {
 public:
  /// `devices_change`: downstream NFs copy their data to a device again, whatever happened to an upstream device.
  ReshardStage(memory::PacketPool& pool, Merger in, Splitter out, bool devices_change = false);
  /// ResourceExhausted if a device that never answered keeps too many units to continue.
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }

 private:
  memory::PacketPool* pool_;
  Merger in_;
  Splitter out_;
  bool devices_change_;
};

/// Sends packets that are alive, writes the lines of each unit, measures latency, and frees slots and units.
class TxStage final : public HostStage {
 public:
  /// `recorder` and `lines`: null if the chain writes no lines.
  TxStage(io::Sink& sink, memory::PacketPool& pool, Merger in, Recorder* recorder = nullptr,
          RecordLog* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  io::Sink const& sink() const { return *sink_; }
  /// Time from rx to tx of every sent packet. Any thread.
  Histogram const& latency() const { return latency_; }

 private:
  Status send(memory::Unit& unit);

  io::Sink* sink_;
  memory::PacketPool* pool_;
  Merger in_;
  Recorder* recorder_;
  RecordLog* lines_;
  Histogram latency_;
};

}  // namespace catena::runtime
