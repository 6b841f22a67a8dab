// SPDX-License-Identifier: Apache-2.0
#include "plan/reasons.hpp"

#include <algorithm>
#include <array>

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

/// Follows a plan through its chain and says why fields move.
class Replay {
 public:
  Replay(std::span<const NfNeeds> chain, Plan& plan) : chain_(chain), plan_(&plan) { device_since_.fill(kTx); }

  void run_all() {
    for (std::size_t nf = 0; nf < chain_.size(); ++nf) {
      run(chain_[nf].prepare(), views_);
      if (chain_[nf].on_gpu) {
        gpu_step(nf, *plan_->nfs[nf].step);
      } else {
        run(chain_[nf].host[1], views_);
      }
      run(chain_[nf].complete(), views_);
    }
  }

 private:
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

  std::span<const NfNeeds> chain_;
  Plan* plan_;
  Views views_;
  std::array<std::size_t, packet::kFieldCount> device_since_{};
};

std::size_t Replay::next_device_reader(std::size_t nf, std::uint32_t field) const {
  for (std::size_t later = nf + 1; later < chain_.size(); ++later) {
    const bool rewritten = has(chain_[later - 1].complete().outdates, field) ||
                           has(chain_[later].prepare().outdates, field) || has(chain_[later].host[1].outdates, field);
    if (rewritten || (chain_[later].on_gpu && has(plan_->nfs[later].step->to_device, field))) {
      return nf;
    }
    if (chain_[later].on_gpu && has(chain_[later].on_device, field)) {
      return later;
    }
  }
  return nf;
}

Replay::HostReader Replay::next_host_reader(std::size_t nf, std::uint32_t field) const {
  for (std::size_t at = nf; at < chain_.size(); ++at) {
    for (std::size_t step = at == nf ? 2 : 0; step < chain_[at].host.size(); ++step) {
      if (at != nf && step == 1 && chain_[at].on_gpu && has(plan_->nfs[at].step->to_host, field)) {
        return {ReasonKind::kWithPacket, nf};
      }
      if (has(chain_[at].host[step].needs, field)) {
        return {ReasonKind::kHostReads, at};
      }
    }
  }
  return {ReasonKind::kHostReads, kTx};
}

void Replay::explain_in(std::size_t nf, GpuStep& step) {
  Reasons reasons(step.reasons);
  FieldSet const reads = step.shared ? chain_[nf].on_device : chain_[nf].direct_in;
  for_each_field(step.to_device | reads, [&](std::uint32_t field) {
    if (!has(step.to_device, field)) {
      reasons.add(Direction::kToDevice, ReasonKind::kValidOnDevice, field, device_since_[field]);
    } else if (step.shared && has(views_.gpu, field)) {
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
    std::size_t next = nf + 1;
    while (next < chain_.size() && !chain_[next].on_gpu) {
      ++next;
    }
    reasons.add(Direction::kToHost, ReasonKind::kNoHostReader, field, next < chain_.size() ? next : kTx);
  });
}

void Replay::gpu_step(std::size_t nf, GpuStep& step) {
  explain_in(nf, step);
  const FieldSet written = chain_[nf].writes;
  if (!step.shared) {
    explain_out(nf, written, step);
    views_.cpu |= written;
    views_.gpu &= ~written;
    return;
  }
  for_each_field(step.to_device | written, [&](std::uint32_t field) { device_since_[field] = nf; });
  views_.gpu |= step.to_device | written;
  views_.cpu &= ~written;
  explain_out(nf, views_.gpu & ~views_.cpu, step);
  views_.cpu |= step.to_host;
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

void add_reasons(std::span<const NfNeeds> chain, Plan& plan) { Replay(chain, plan).run_all(); }

}  // namespace catena::plan
