// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/data_path.hpp"
#include "chain/segments.hpp"
#include "chain/topology.hpp"
#include "nf/instance.hpp"
#include "nf/named_files.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/classifier_stage.hpp"
#include "pipeline/counted_parts.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/flow_paths.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/isolation/isolated_nf.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/process_stage.hpp"
#include "pipeline/shard_map.hpp"
#include "pipeline/stage.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// An NF of a chain in one shard.
struct NfEntry {
  chain::NfConfig config;
  std::unique_ptr<nf::Instance> instance;
  nf_process::IsolatedNf* isolated = nullptr;      ///< the NF of `instance`, in a separate process; null: it is here
  bool is_kept = false;                            ///< another instance of the chain before has the same NF
  DeviceStage* device_stage = nullptr;             ///< null: on the CPU
  ProcessStage* process_stage = nullptr;           ///< null: in this process, or an earlier NF has the stage
  PacketStage* stage = nullptr;                    ///< null: an earlier NF in the same process has the stage
  std::optional<chain::NfKey> key = std::nullopt;  ///< set if the NF's cost is needed
  std::vector<nf::NamedFile> files = {};           ///< read by its create()
  std::vector<nf::NamedKey> keys = {};             ///< encryption keys read by its create()
  /// Configuration and file contents at creation; nullopt if the files could not be read a second time.
  std::optional<Content> content = std::nullopt;
};

/// A part of the chain for the packets of some flows, with its own NFs, stages and queues.
struct Shard {
  Shard() = default;
  Shard(Shard&&) = default;
  Shard(Shard const&) = delete;
  std::vector<NfEntry> nfs;
  std::deque<memory::UnitQueue> queues;  ///< numbered as in the segment's topology
};

/// Consecutive NFs with the same sharding.
struct Segment {
  chain::Segment part;
  chain::Topology topology;
  std::vector<Shard> shards = {};               ///< at least one
  std::unique_ptr<SplitOrder> order = nullptr;  ///< of several shards with one source, for the merge
};

/// The NFs of a chain in all shards, their queues, and the stages that pass packets through them.
/// Call order: Pipeline() -> add_..() for each stage, upstream ones first -> run(). By one thread, unless stated
/// otherwise. Moving it moves no segment, NF or stage.
class Pipeline {
 public:
  /// Without NFs and stages.
  Pipeline() = default;
  Pipeline(Pipeline&&) = default;
  Pipeline& operator=(Pipeline&&) = default;
  /// `segments`: those of `path`, with their NFs. `flow_key`: of flow_hash(), which divides packets among shards.
  Pipeline(chain::DataPath path, std::vector<Segment> segments, std::uint64_t flow_key);

  chain::DataPath const& path() const { return path_; }
  std::span<Segment> segments() { return segments_; }
  std::span<const Segment> segments() const { return segments_; }
  /// For each NF of the chain, its entry in each shard.
  std::span<const std::vector<NfEntry*>> entries() const { return entries_; }
  /// NF number `nf` in its first shard.
  NfEntry const& first_of(std::size_t nf) const { return *entries_[nf].front(); }
  /// Of all NFs, in their first shards.
  std::vector<nf::Instance*> first_instances() const;
  /// Calls `visit(shard, entry)` for each NF in each shard, segment by segment.
  template <typename Visit>
  void for_each_entry(Visit visit) const {
    for (Segment const& segment : segments_) {
      for (std::size_t shard = 0; shard < segment.shards.size(); ++shard) {
        for (NfEntry const& entry : segment.shards[shard].nfs) {
          visit(shard, entry);
        }
      }
    }
  }
  /// Whether an NF selects the shard of a packet.
  bool is_divided_by_nf() const;
  /// How packets are divided among the shards of `segment`.
  ShardMap shard_map_of(Segment const& segment) const;
  std::uint64_t flow_key() const { return flow_key_; }

  /// Each adds a stage.
  void add_rx(std::unique_ptr<RxStage> stage);
  void add_tx(std::unique_ptr<TxStage> stage);
  void add_reshard(std::unique_ptr<ReshardStage> stage);
  void add_classifier(std::size_t shard, std::unique_ptr<ClassifierStage> stage);
  /// `entry`: the first NF of the stage, in this pipeline.
  void add_nf(NfEntry& entry, std::unique_ptr<PacketStage> stage);
  /// The stages of a shard become neighbours, so that one worker can poll a whole shard. With a source and a sink for
  /// each shard, after the last stage.
  void group_by_shard();
  /// As many as sources, and as sinks.
  std::span<RxStage* const> rx() const { return rx_; }
  std::span<TxStage* const> tx() const { return tx_; }
  std::span<const CountedBranch> classifiers() const { return classifiers_; }
  /// `config`: of the chain.
  FlowPaths flow_paths(chain::ChainConfig const& config);
  /// The stages and NFs among them.
  CountedParts counted_parts() const;
  /// Units before NF number `nf`, in all shards. Any thread, after the last stage.
  std::uint64_t waiting_units(std::size_t nf) const;

  /// Polls all stages to their end, by `workers` threads, which have `cores` in turn; without cores, any. If each shard
  /// has its own source and sink, its stages keep to a group of workers, so that its packets stay near them. An error
  /// of one group sets `stop`. Errors: as sched::run_stages(); ResourceExhausted if a thread cannot be started.
  Status run(std::uint32_t workers, std::span<const std::uint32_t> cores, std::atomic<bool>& stop);
  /// Destroys all stages, which hold launches: call before the end of the devices.
  void end_stages();

 private:
  Status run_group(std::size_t group, std::size_t groups, std::uint32_t workers, std::span<const std::uint32_t> cores,
                   std::atomic<bool>& stop);

  chain::DataPath path_;
  std::vector<Segment> segments_;
  std::vector<std::vector<NfEntry*>> entries_;
  std::uint64_t flow_key_ = 0;
  std::vector<std::unique_ptr<PacketStage>> stages_;
  std::vector<RxStage*> rx_;
  std::vector<TxStage*> tx_;
  std::vector<ReshardStage*> reshard_stages_;
  std::vector<CountedBranch> classifiers_;
};

}  // namespace catena::runtime
