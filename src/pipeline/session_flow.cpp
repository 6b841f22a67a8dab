// SPDX-License-Identifier: Apache-2.0
// Where packets go in a session.
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::runtime {

bool Session::has_classifiers() const {
  return std::ranges::any_of(tables_, [](chain::NextNodeTable const& table) { return !table.is_direct(); });
}

/// Adds the classifier after rx (0) or NF `node` - 1 of a graph, if packets take several branches there.
void Session::add_classifier_stage(Segment& segment, std::size_t shard, std::size_t node, RecordLog* lines) {
  const std::optional<std::size_t> in = segment.topology.classifier(node);
  if (!in) {
    return;
  }
  std::deque<memory::UnitQueue>& queues = segment.shards[shard].queues;
  std::vector<memory::UnitQueue*> out;
  for (const std::size_t target : tables_[node].targets()) {
    out.push_back(&queues[segment.topology.before_target(target)]);
  }
  auto stage = std::make_unique<ClassifierStage>(node == 0 ? "rx" : config_.nfs[node - 1].name, tables_[node],
                                                 ends_.pool_of(shard), queues[*in], std::move(out),
                                                 queues[segment.topology.last()], ends_.reserve_of(shard), lines);
  classifiers_.push_back({shard, stage.get()});
  add_host_stage(std::move(stage), segment.shards.size() > 1 ? concat("/", shard) : std::string());
}

FlowPaths Session::flow_paths() {
  FlowPaths paths{.has_own_ends = ends_.are_divided(), .tables = tables_};
  for (std::size_t number = 0; number < segments_.size(); ++number) {
    Segment& segment = segments_[number];
    for (std::size_t i = 0; i < segment.part.end - segment.part.first; ++i) {
      const std::size_t nf = segment.part.first + i;
      FlowPaths::Nf& path =
          paths.nfs.emplace_back(FlowPaths::Nf{config_.nfs[nf].name, number, chain::group_of(config_, nf).end - 1});
      for (Shard& shard : segment.shards) {
        path.shards.push_back(
            {&shard.queues[segment.topology.before_nf(i)], &shard.queues[segment.topology.last()], shard.nfs[i].stage});
      }
    }
  }
  for (std::size_t i = 0; i < rx_.size(); ++i) {
    paths.rx.push_back({rx_[i], ends_.sources()[i]->live_clock().has_value()});
  }
  return paths;
}

}  // namespace catena::runtime
