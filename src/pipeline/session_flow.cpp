// SPDX-License-Identifier: Apache-2.0
// Where packets go in a session, and who waits for whom.
#include "pipeline/counts.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
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
  auto stage = std::make_unique<ClassifierStage>(
      node == 0 ? "rx" : config_.nfs[node - 1].name, tables_[node], pool_of(shard), queues[*in], std::move(out),
      queues[segment.topology.last()], *reserves_[shard % reserves_.size()], lines);
  classifiers_.emplace_back(shard, stage.get());
  add_host_stage(std::move(stage), segment.shards.size() > 1 ? concat("/", shard) : std::string());
}

/// Numbers of the NFs that packets may come to next from rx, 0, or NF `node` - 1.
std::vector<std::size_t> Session::nfs_after(std::size_t node) const {
  std::vector<std::size_t> after;
  if (tables_.empty()) {
    after.assign(node < config_.nfs.size() ? 1 : 0, node);
    return after;
  }
  std::ranges::copy_if(tables_[node].targets(), std::back_inserter(after),
                       [](std::size_t target) { return target != chain::kTx; });
  return after;
}

/// Whom rx tells that it waits, and who tells tx.
Status Session::make_signals() {
  chain::FlowConfig const& flow = config_.flow;
  if (Session const* const before = before_ ? before_->session : nullptr; before != nullptr) {
    const bool has_same_signals = flow.signals ? before->signals_ != nullptr && before->signals_->serves(*flow.signals)
                                               : before->signals_ == nullptr;
    if (has_same_signals) {
      pauses_ = before->pauses_;
      signals_ = before->signals_;
    }
  }
  if (flow.signals && signals_ == nullptr) {
    Result<std::unique_ptr<FlowSignals>> made = FlowSignals::create(*flow.signals, pauses_);
    if (!made.ok() && before_) {  // most likely the one before has the port
      return absl::FailedPreconditionError(made.status().message());
    }
    CATENA_ASSIGN_OR_RETURN(signals_, std::move(made));
  }
  if (signals_ != nullptr) {
    tx_pause_.emplace(signals_->is_tx_congested());
  }
  return absl::OkStatus();
}

/// After the last packet; who goes on for this one has the signals then.
void Session::end_signals(bool is_passed_on) {
  for (RxStage* const rx : rx_) {
    rx->end_gate();  // where another stage's error ended the run
  }
  if (!is_passed_on && signals_ != nullptr) {
    signals_->end();
  }
}

/// Whether packets may come to tx next from rx, 0, or NF `node` - 1.
bool Session::is_before_tx(std::size_t node) const {
  return tables_.empty() ? node == config_.nfs.size()
                         : std::ranges::find(tables_[node].targets(), chain::kTx) != tables_[node].targets().end();
}

/// Of rx, 0, or NF `node` - 1, in a shard. If the next NF is sharded differently, all of its shards count.
RateController Session::controller_of(std::size_t node, std::size_t shard) const {
  std::vector<CongestionMonitor const*> after;
  for (const std::size_t nf : nfs_after(node)) {
    const auto segment_of = [this](std::size_t number) {
      return std::ranges::find_if(segments_, [number](Segment const& each) { return number < each.part.end; });
    };
    const bool is_in_shard = node > 0 ? segment_of(nf) == segment_of(node - 1) : has_own_ends_;
    for (std::size_t i = 0; i < monitors_[nf].size(); ++i) {
      if (!is_in_shard || i == shard) {
        after.push_back(monitors_[nf][i].get());
      }
    }
  }
  return RateController(std::move(after), tx_pause_ && is_before_tx(node) ? &*tx_pause_ : nullptr);
}

/// Has stages pause while later ones have too many packets waiting.
void Session::make_gates() {
  if (config_.flow.mode != chain::FlowMode::kBackpressure) {
    return;
  }
  std::vector<std::uint32_t> receivers(config_.nfs.size());
  for (std::size_t node = 0; node <= config_.nfs.size(); ++node) {
    for (const std::size_t nf : nfs_after(node)) {
      ++receivers[nf];
    }
  }
  monitors_.resize(config_.nfs.size());
  for (Segment& segment : segments_) {
    for (Shard& shard : segment.shards) {
      for (std::size_t i = 0; i < shard.nfs.size(); ++i) {
        const std::size_t nf = segment.part.first + i;
        monitors_[nf].push_back(std::make_unique<CongestionMonitor>(
            config_.nfs[nf].name, shard.queues[segment.topology.before_nf(i)], limits_[nf], receivers[nf],
            std::chrono::microseconds(config_.flow.period_us)));
      }
    }
  }
  for (std::size_t i = 0; i < rx_.size(); ++i) {
    rx_[i]->control(
        gates_.emplace_back(nullptr, controller_of(0, i), pauses_.get(), tx_pause_ ? &*tx_pause_ : nullptr));
    if (has_classifiers() && sources_[i]->live_clock()) {
      std::vector<CongestionMonitor const*> of_shard;
      for (auto const& of_nf : monitors_) {
        of_shard.push_back(of_nf[has_own_ends_ ? i : 0].get());
      }
      rx_[i]->filter(*edges_.emplace_back(std::make_unique<EdgeFilter>(tables_, std::move(of_shard))));
    }
  }
  gates_of_.resize(config_.nfs.size());
  for (std::size_t nf = 0; nf < entries_.size(); ++nf) {
    for (std::size_t shard = 0; shard < entries_[nf].size(); ++shard) {
      // those of a process have one stage: it takes what waits for the first, and sends to where the last does
      if (PacketStage* const stage = entries_[nf][shard]->stage; stage != nullptr) {
        const std::size_t last = chain::group_of(config_, nf).end - 1;
        FlowGate& gate = gates_.emplace_back(monitors_[nf][shard].get(), controller_of(last + 1, shard));
        stage->control(gate);
        gates_of_[nf].push_back(&gate);
      }
    }
  }
}

void Session::register_classifier_counts() {
  std::vector<std::string> names;
  std::ranges::transform(config_.nfs, std::back_inserter(names), &chain::NfConfig::name);
  for (auto const& [shard, classifier] : classifiers_) {
    metrics_.add({{"shard", std::to_string(shard)}}, [names, classifier = classifier](metrics::Snapshot& counts) {
      collect(*classifier, names, counts);
      collect(*classifier, false, counts);
    });
  }
}

void Session::register_flow_counts() {
  if (config_.flow.mode == chain::FlowMode::kBackpressure) {
    metrics_.add({}, [pauses = pauses_](metrics::Snapshot& counts) { collect(*pauses, counts); });
  }
  if (signals_ != nullptr) {
    metrics_.add({}, [signals = signals_](metrics::Snapshot& counts) { collect(*signals, counts); });
  }
  for (std::size_t nf = 0; nf < limits_.size(); ++nf) {
    Segment const& segment = *std::ranges::find_if(segments_, [nf](Segment const& each) { return nf < each.part.end; });
    for (std::size_t shard = 0; shard < segment.shards.size(); ++shard) {
      memory::UnitQueue const* queue =
          &segment.shards[shard].queues[segment.topology.before_nf(nf - segment.part.first)];
      metrics_.add({{"shard", std::to_string(shard)}},
                   [queue, name = config_.nfs[nf].name](metrics::Snapshot& counts) { collect(name, *queue, counts); });
      if (!monitors_.empty()) {
        metrics_.add({{"shard", std::to_string(shard)}},
                     [monitor = monitors_[nf][shard].get()](metrics::Snapshot& counts) { collect(*monitor, counts); });
      }
    }
    for (std::size_t shard = 0; !gates_of_.empty() && shard < gates_of_[nf].size(); ++shard) {
      metrics_.add({{"shard", std::to_string(shard)}},
                   [gate = gates_of_[nf][shard], name = config_.nfs[nf].name](metrics::Snapshot& counts) {
                     collect(name, *gate, counts);
                   });
    }
  }
}

}  // namespace catena::runtime
