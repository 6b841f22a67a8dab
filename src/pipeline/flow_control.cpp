// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_control.hpp"

#include "pipeline/counts.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace catena::runtime {

std::optional<std::uint64_t> FlowControl::limit_in_process(std::size_t first, std::size_t end) const {
  if (limits_.empty()) {
    return std::nullopt;
  }
  std::uint64_t packets = 0;
  for (std::size_t nf = first; nf < end; ++nf) {
    packets += limits_[nf].in_process;
  }
  return packets;
}

Status FlowControl::connect(std::optional<chain::FlowSignalsConfig> const& config, FlowControl const* before) {
  const bool has_same_signals =
      before != nullptr &&
      (config ? before->signals_ != nullptr && before->signals_->serves(*config) : before->signals_ == nullptr);
  if (has_same_signals) {
    pauses_ = before->pauses_;
    signals_ = before->signals_;
  }
  if (config && signals_ == nullptr) {
    Result<std::unique_ptr<FlowSignals>> made = FlowSignals::create(*config, pauses_);
    if (!made.ok() && before != nullptr) {
      return absl::FailedPreconditionError(made.status().message());
    }
    CATENA_ASSIGN_OR_RETURN(signals_, std::move(made));
  }
  if (signals_ != nullptr) {
    tx_pause_.emplace(signals_->is_tx_congested());
  }
  return absl::OkStatus();
}

void FlowControl::attach(chain::FlowConfig const& flow, FlowPaths const& paths) {
  for (std::size_t nf = 0; nf < limits_.size(); ++nf) {
    names_.push_back(paths.nfs[nf].name);
    std::vector<Ring>& of_nf = rings_.emplace_back();
    for (NfPlace const& place : paths.nfs[nf].shards) {
      of_nf.push_back({place.in});
      if (flow.mode == chain::FlowMode::kVanilla) {
        place.in->bound(limits_[nf].slow_down, *place.last);
      }
    }
  }
  if (flow.mode == chain::FlowMode::kBackpressure) {
    add_monitors(flow, paths);
    add_gates(paths);
    add_filters(paths);
  }
}

void FlowControl::add_monitors(chain::FlowConfig const& flow, FlowPaths const& paths) {
  const std::vector<std::uint32_t> receivers = paths.senders();
  for (std::size_t nf = 0; nf < rings_.size(); ++nf) {
    for (Ring& ring : rings_[nf]) {
      ring.monitor = std::make_unique<CongestionMonitor>(names_[nf], *ring.queue, limits_[nf], receivers[nf],
                                                         std::chrono::microseconds(flow.period_us));
    }
  }
}

void FlowControl::add_gates(FlowPaths const& paths) {
  for (std::size_t i = 0; i < paths.rx.size(); ++i) {
    paths.rx[i].stage->control(
        rx_gates_.emplace_back(nullptr, controller_of(paths, 0, i), pauses_.get(), tx_pause_ ? &*tx_pause_ : nullptr));
  }
  for (std::size_t nf = 0; nf < rings_.size(); ++nf) {
    for (std::size_t shard = 0; shard < rings_[nf].size(); ++shard) {
      // those of a process have one stage: it takes what waits for the first, and sends to where the last does
      if (PacketStage* const stage = paths.nfs[nf].shards[shard].stage; stage != nullptr) {
        Ring& ring = rings_[nf][shard];
        ring.gate = std::make_unique<FlowGate>(ring.monitor.get(), controller_of(paths, paths.nfs[nf].last + 1, shard));
        stage->control(*ring.gate);
      }
    }
  }
}

/// At each rx that cannot wait, in a chain with branches.
void FlowControl::add_filters(FlowPaths const& paths) {
  const bool has_branches = paths.has_branches();
  for (std::size_t i = 0; has_branches && i < paths.rx.size(); ++i) {
    if (!paths.rx[i].is_live) {
      continue;
    }
    std::vector<CongestionMonitor const*> of_shard;
    for (std::vector<Ring> const& of_nf : rings_) {
      of_shard.push_back(of_nf[paths.has_own_ends ? i : 0].monitor.get());
    }
    paths.rx[i].stage->filter(edges_.emplace_back(paths.tables, std::move(of_shard)));
  }
}

/// Of rx, 0, or NF `node` - 1, in a shard. If the next NF is sharded differently, all of its shards count.
RateController FlowControl::controller_of(FlowPaths const& paths, std::size_t node, std::size_t shard) const {
  std::vector<CongestionMonitor const*> after;
  for (const std::size_t nf : paths.nfs_after(node)) {
    const bool is_in_shard = paths.keeps_shard(node, nf);
    for (std::size_t i = 0; i < rings_[nf].size(); ++i) {
      if (!is_in_shard || i == shard) {
        after.push_back(rings_[nf][i].monitor.get());
      }
    }
  }
  return RateController(std::move(after), tx_pause_ && paths.is_before_tx(node) ? &*tx_pause_ : nullptr);
}

void FlowControl::register_counts(metrics::Registry& counts) const {
  if (!rx_gates_.empty()) {
    counts.add({}, [pauses = pauses_](metrics::Snapshot& now) { collect(*pauses, now); });
  }
  if (signals_ != nullptr) {
    counts.add({}, [signals = signals_](metrics::Snapshot& now) { collect(*signals, now); });
  }
  for (std::size_t nf = 0; nf < rings_.size(); ++nf) {
    for (std::size_t shard = 0; shard < rings_[nf].size(); ++shard) {
      counts.add({{"shard", std::to_string(shard)}},
                 [&ring = rings_[nf][shard], &name = names_[nf]](metrics::Snapshot& now) {
                   collect(name, *ring.queue, now);
                   if (ring.monitor != nullptr) {
                     collect(*ring.monitor, now);
                   }
                   if (ring.gate != nullptr) {
                     collect(name, *ring.gate, now);
                   }
                 });
    }
  }
}

std::uint64_t FlowControl::refused() const {
  std::uint64_t packets = 0;
  for (std::vector<Ring> const& of_nf : rings_) {
    for (Ring const& ring : of_nf) {
      packets += ring.queue->refused();
    }
  }
  return packets;
}

void FlowControl::end(bool is_passed_on) {
  for (FlowGate& gate : rx_gates_) {
    gate.end();  // where another stage's error ended the run
  }
  if (!is_passed_on && signals_ != nullptr) {
    signals_->end();
  }
}

}  // namespace catena::runtime
