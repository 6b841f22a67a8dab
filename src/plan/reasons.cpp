// SPDX-License-Identifier: Apache-2.0
#include "plan/reasons.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "plan/candidates.hpp"

namespace catena::plan {
namespace {

using packet::FieldSet;

/// Collects fields with the same reason.
class Reasons {
 public:
  explicit Reasons(std::vector<Reason>& list) : list_(&list) {}

  void add(Direction direction, ReasonKind kind, std::uint32_t field, std::size_t nf) {
    const FieldSet bit = FieldSet{1} << field;
    const auto same = std::find_if(list_->begin(), list_->end(), [&](Reason const& reason) {
      return reason.direction == direction && reason.kind == kind && reason.nf == nf;
    });
    if (same != list_->end()) {
      same->fields |= bit;
    } else {
      list_->push_back({direction, kind, bit, nf});
    }
  }

 private:
  std::vector<Reason>* list_;
};

template <typename Function>
void for_each_field(FieldSet set, Function const& function) {
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    if (((set >> field) & 1U) != 0) {
      function(field);
    }
  }
}

bool has(FieldSet set, std::uint32_t field) { return ((set >> field) & 1U) != 0; }

/// Follows a plan through its chain and says why fields move. Of several paths it names the first NF that has the
/// reason.
class Replay {
 public:
  Replay(std::span<const NfNeeds> chain, std::span<const PlanEdge> edges, Plan& plan)
      : chain_(chain), plan_(&plan), next_(chain.size()), before_(chain.size()) {
    for (PlanEdge const& edge : edges) {
      if (edge.from == kRx) {
        continue;
      }
      next_[edge.from].push_back(edge.is_copy ? kTx : edge.to);  // who copies reads everything, as tx does
      if (edge.to != kTx && !edge.is_copy) {
        before_[edge.to].push_back(edge.from);
      }
    }
    for (PlanEdge const& edge : edges) {
      if (edge.to != kTx && (edge.from == kRx || edge.is_copy)) {
        fresh_.insert(edge.to);
      }
    }
  }

  void run_all() {
    std::vector<State> after;
    for (std::size_t nf = 0; nf < chain_.size(); ++nf) {
      state_ = arrive(nf, after);
      run(chain_[nf].prepare(), state_.views);
      if (chain_[nf].on_gpu) {
        gpu_step(nf, *plan_->nfs[nf].step);
      } else {
        run(chain_[nf].host[1], state_.views);
      }
      run(chain_[nf].complete(), state_.views);
      after.push_back(state_);
    }
  }

 private:
  struct State {
    State() { device_since.fill(kTx); }
    Views views = kOnHost;
    std::array<std::size_t, packet::kFieldCount> device_since;
  };
  /// What packets are like that come to `nf`.
  State arrive(std::size_t nf, std::span<const State> after) const;
  void gpu_step(std::size_t nf, GpuStep& step);
  void explain_in(std::size_t nf, GpuStep& step);
  void explain_out(std::size_t nf, FieldSet dirty, GpuStep& step);
  /// The next GPU NF after `nf` that reads what the device has of `field`; `nf` if it is overwritten or moved again
  /// before.
  std::size_t next_device_reader(std::size_t nf, std::uint32_t field) const;
  struct HostReader {
    ReasonKind kind;
    std::size_t nf;
  };
  /// Who needs `field` on the CPU next, from complete() of `nf` on; kWithPacket if it comes back again before that.
  HostReader next_host_reader(std::size_t nf, std::uint32_t field) const;
  /// The same, of a packet that left `at`; none: it comes back, or ends unread, before.
  std::optional<std::size_t> host_reader_behind(std::size_t at, std::uint32_t field) const;
  /// The next GPU NF of a packet that left `nf`; kTx: there is none.
  std::size_t next_on_gpu(std::size_t nf) const;

  std::span<const NfNeeds> chain_;
  Plan* plan_;
  std::vector<std::vector<std::size_t>> next_;    ///< of each NF, where packets go from there
  std::vector<std::vector<std::size_t>> before_;  ///< and where those come from that the device may have something of
  std::set<std::size_t> fresh_;                   ///< NFs that also get packets which are on the host alone
  State state_;
};

Replay::State Replay::arrive(std::size_t nf, std::span<const State> after) const {
  State state;
  if (before_[nf].empty()) {
    return state;
  }
  state = after[before_[nf].front()];
  for (const std::size_t before : before_[nf]) {
    state.views = both(state.views, after[before].views);
  }
  if (fresh_.contains(nf)) {
    state.views = both(state.views, kOnHost);
  }
  return state;
}

std::size_t Replay::next_device_reader(std::size_t nf, std::uint32_t field) const {
  if (has(chain_[nf].complete().outdates, field)) {
    return nf;
  }
  for (const std::size_t later : next_[nf]) {
    if (later == kTx || has(chain_[later].prepare().outdates, field) || has(chain_[later].host[1].outdates, field) ||
        (chain_[later].on_gpu && has(plan_->nfs[later].step->to_device, field))) {
      continue;
    }
    if (chain_[later].on_gpu && has(chain_[later].on_device, field)) {
      return later;
    }
    if (const std::size_t reader = next_device_reader(later, field); reader != later) {
      return reader;
    }
  }
  return nf;
}

std::optional<std::size_t> Replay::host_reader_behind(std::size_t at, std::uint32_t field) const {
  for (const std::size_t next : next_[at]) {
    if (next == kTx) {
      return kTx;
    }
    bool comes_back = false;
    for (std::size_t step = 0; step < chain_[next].host.size() && !comes_back; ++step) {
      comes_back = step == 1 && chain_[next].on_gpu && has(plan_->nfs[next].step->to_host, field);
      if (!comes_back && has(chain_[next].host[step].needs, field)) {
        return next;
      }
    }
    if (comes_back) {
      continue;
    }
    if (const std::optional<std::size_t> reader = host_reader_behind(next, field)) {
      return reader;
    }
  }
  return std::nullopt;
}

Replay::HostReader Replay::next_host_reader(std::size_t nf, std::uint32_t field) const {
  if (has(chain_[nf].complete().needs, field)) {
    return {ReasonKind::kHostReads, nf};
  }
  const std::optional<std::size_t> reader = host_reader_behind(nf, field);
  return reader ? HostReader{ReasonKind::kHostReads, *reader} : HostReader{ReasonKind::kWithPacket, nf};
}

std::size_t Replay::next_on_gpu(std::size_t nf) const {
  for (const std::size_t next : next_[nf]) {
    const std::size_t found = next == kTx || chain_[next].on_gpu ? next : next_on_gpu(next);
    if (found != kTx) {
      return found;
    }
  }
  return kTx;
}

void Replay::explain_in(std::size_t nf, GpuStep& step) {
  Reasons reasons(step.reasons);
  FieldSet const reads = step.shared ? chain_[nf].on_device : chain_[nf].direct_in;
  for_each_field(step.to_device | reads, [&](std::uint32_t field) {
    if (!has(step.to_device, field)) {
      reasons.add(Direction::kToDevice, ReasonKind::kValidOnDevice, field, state_.device_since[field]);
    } else if (step.shared && has(state_.views.gpu, field)) {
      reasons.add(Direction::kToDevice, ReasonKind::kWithPacket, field, nf);
    } else if (has(reads, field)) {
      reasons.add(Direction::kToDevice, ReasonKind::kReadHere, field, nf);
    } else {
      const std::size_t reader = next_device_reader(nf, field);
      reasons.add(Direction::kToDevice, reader == nf ? ReasonKind::kWithPacket : ReasonKind::kReadLater, field, reader);
    }
  });
}

void Replay::explain_out(std::size_t nf, FieldSet dirty, GpuStep& step) {
  Reasons reasons(step.reasons);
  for_each_field(step.to_host | dirty, [&](std::uint32_t field) {
    if (!has(dirty, field)) {
      return reasons.add(Direction::kToHost, ReasonKind::kWithPacket, field, nf);
    }
    if (has(step.to_host, field) && !step.shared) {
      return reasons.add(Direction::kToHost, ReasonKind::kWrittenBack, field, nf);
    }
    const HostReader reader = next_host_reader(nf, field);
    if (has(step.to_host, field)) {
      return reasons.add(Direction::kToHost, reader.kind, field, reader.nf);
    }
    reasons.add(Direction::kToHost, ReasonKind::kNoHostReader, field, next_on_gpu(nf));
  });
}

void Replay::gpu_step(std::size_t nf, GpuStep& step) {
  explain_in(nf, step);
  const FieldSet written = chain_[nf].writes;
  if (!step.shared) {
    explain_out(nf, written, step);
    state_.views.cpu |= written;
    state_.views.gpu &= ~written;
    return;
  }
  for_each_field(step.to_device | written, [&](std::uint32_t field) { state_.device_since[field] = nf; });
  state_.views.gpu |= step.to_device | written;
  state_.views.cpu &= ~written;
  explain_out(nf, state_.views.gpu & ~state_.views.cpu, step);
  state_.views.cpu |= step.to_host;
}

}  // namespace

bool is_moved(ReasonKind kind) {
  switch (kind) {
    case ReasonKind::kReadHere:
    case ReasonKind::kReadLater:
    case ReasonKind::kWithPacket:
    case ReasonKind::kHostReads:
    case ReasonKind::kWrittenBack:
      return true;
    case ReasonKind::kValidOnDevice:
    case ReasonKind::kNoHostReader:
      return false;
  }
  return false;
}

void add_reasons(std::span<const NfNeeds> chain, std::span<const PlanEdge> edges, Plan& plan) {
  Replay(chain, edges, plan).run_all();
}

}  // namespace catena::plan
