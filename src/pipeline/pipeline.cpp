// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.hpp"

#include "base/sched/workers.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <future>
#include <string>
#include <system_error>
#include <utility>

namespace catena::runtime {

Pipeline::Pipeline(chain::DataPath path, std::vector<Segment> segments, std::uint64_t flow_key)
    : path_(std::move(path)), segments_(std::move(segments)), entries_(segments_.back().part.end), flow_key_(flow_key) {
  for (Segment& segment : segments_) {
    for (Shard& shard : segment.shards) {
      for (std::size_t i = 0; i < shard.nfs.size(); ++i) {
        entries_[segment.part.first + i].push_back(&shard.nfs[i]);
      }
    }
  }
}

std::vector<nf::Instance*> Pipeline::first_instances() const {
  std::vector<nf::Instance*> instances;
  for (std::vector<NfEntry*> const& entries : entries_) {
    instances.push_back(entries.front()->instance.get());
  }
  return instances;
}

bool Pipeline::is_divided_by_nf() const {
  return std::ranges::any_of(segments_, [](Segment const& segment) { return segment.part.divided_by.has_value(); });
}

ShardMap Pipeline::shard_map_of(Segment const& segment) const {
  if (!segment.part.divided_by) {
    return {segment.part.shards, flow_key_};
  }
  return {segment.part.shards, flow_key_, *first_of(*segment.part.divided_by).instance};
}

void Pipeline::add_rx(std::unique_ptr<RxStage> stage) {
  rx_.push_back(stage.get());
  stages_.push_back(std::move(stage));
}

void Pipeline::add_tx(std::unique_ptr<TxStage> stage) {
  tx_.push_back(stage.get());
  stages_.push_back(std::move(stage));
}

void Pipeline::add_reshard(std::unique_ptr<ReshardStage> stage) {
  reshard_stages_.push_back(stage.get());
  stages_.push_back(std::move(stage));
}

void Pipeline::add_classifier(std::size_t shard, std::unique_ptr<ClassifierStage> stage) {
  classifiers_.push_back({shard, stage.get()});
  stages_.push_back(std::move(stage));
}

void Pipeline::add_nf(NfEntry& entry, std::unique_ptr<PacketStage> stage) {
  entry.stage = stage.get();
  stages_.push_back(std::move(stage));
}

void Pipeline::group_by_shard() {
  const std::size_t shards = rx_.size();
  const std::size_t nfs = (stages_.size() - 2 * shards) / shards;  // those of one process are one stage
  std::vector<std::unique_ptr<PacketStage>> grouped;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    grouped.push_back(std::move(stages_[shard]));
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      grouped.push_back(std::move(stages_[shards + shard * nfs + nf]));
    }
    grouped.push_back(std::move(stages_[shards + shards * nfs + shard]));
  }
  stages_ = std::move(grouped);
}

FlowPaths Pipeline::flow_paths(chain::ChainConfig const& config) {
  FlowPaths paths{.has_own_ends = rx_.size() > 1, .tables = path_.tables};
  for (std::size_t number = 0; number < segments_.size(); ++number) {
    Segment& segment = segments_[number];
    for (std::size_t i = 0; i < segment.part.end - segment.part.first; ++i) {
      const std::size_t nf = segment.part.first + i;
      NfPath& path = paths.nfs.emplace_back(NfPath{config.nfs[nf].name, number, chain::group_of(config, nf).end - 1});
      for (Shard& shard : segment.shards) {
        path.shards.push_back(
            {&shard.queues[segment.topology.before_nf(i)], &shard.queues[segment.topology.last()], shard.nfs[i].stage});
      }
    }
  }
  for (RxStage* const rx : rx_) {
    paths.rx.push_back({rx, rx->source().live_clock().has_value()});
  }
  return paths;
}

CountedParts Pipeline::counted_parts() const {
  CountedParts parts{.rx = {rx_.begin(), rx_.end()},
                     .tx = {tx_.begin(), tx_.end()},
                     .branches = classifiers_,
                     .reshards = {reshard_stages_.begin(), reshard_stages_.end()}};
  for (std::vector<NfEntry*> const& entries : entries_) {
    parts.names.push_back(entries.front()->config.name);
  }
  for_each_entry([&parts](std::size_t shard, NfEntry const& entry) {
    parts.nfs.push_back({shard, entry.instance.get(), entry.isolated, entry.stage, entry.is_kept});
  });
  return parts;
}

std::uint64_t Pipeline::waiting_units(std::size_t nf) const {
  std::uint64_t units = 0;
  for (Segment const& segment : segments_) {
    for (Shard const& shard : segment.shards) {
      if (nf >= segment.part.first && nf < segment.part.end) {
        units += shard.queues[segment.topology.before_nf(nf - segment.part.first)].size();
      }
    }
  }
  return units;
}

/// Stages and workers of group number `group` of `groups`: whole shards.
Status Pipeline::run_group(std::size_t group, std::size_t groups, std::uint32_t workers,
                           std::span<const std::uint32_t> cores, std::atomic<bool>& stop) {
  const auto begin_of = [groups](std::size_t of, std::size_t all) { return of * all / groups; };
  const std::size_t stages_of_source = stages_.size() / rx_.size();
  std::vector<sched::Stage*> stages;
  const std::size_t end = begin_of(group + 1, rx_.size()) * stages_of_source;
  for (std::size_t i = begin_of(group, rx_.size()) * stages_of_source; i < end; ++i) {
    stages.push_back(stages_[i].get());
  }
  const std::size_t first_worker = begin_of(group, workers);
  const std::size_t own_workers = begin_of(group + 1, workers) - first_worker;
  std::vector<std::uint32_t> own_cores;
  for (std::size_t i = 0; i < own_workers && !cores.empty(); ++i) {
    own_cores.push_back(cores[(first_worker + i) % cores.size()]);
  }
  Status status = sched::run_stages(stages, static_cast<std::uint32_t>(own_workers), own_cores);
  if (!status.ok()) {
    stop.store(true, std::memory_order_relaxed);  // the other groups need not go on
  }
  return status;
}

Status Pipeline::run(std::uint32_t workers, std::span<const std::uint32_t> cores, std::atomic<bool>& stop) {
  const std::size_t groups = rx_.size() > 1 ? std::min<std::size_t>(workers, rx_.size()) : 1;
  std::vector<std::future<Status>> others;
  Status status;
  for (std::size_t group = 1; group < groups && status.ok(); ++group) {
    try {
      others.push_back(std::async(std::launch::async, [this, group, groups, workers, cores, &stop] {
        return run_group(group, groups, workers, cores, stop);
      }));
    } catch (std::system_error const& error) {
      stop.store(true, std::memory_order_relaxed);
      status = absl::ResourceExhaustedError(concat("no thread for the workers of a shard: ", error.what()));
    }
  }
  status.Update(run_group(0, groups, workers, cores, stop));
  for (std::future<Status>& group : others) {
    status.Update(group.get());
  }
  return status;
}

void Pipeline::end_stages() { stages_.clear(); }

}  // namespace catena::runtime
