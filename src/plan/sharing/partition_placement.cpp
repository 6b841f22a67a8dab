// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/partition_placement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace catena::share {
namespace {

constexpr double kNsPerS = 1e9;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSame = 1e-9;  // speeds that differ by less are rounded differently

double per_second(double ns) { return ns > 0 ? kNsPerS / ns : kInfinite; }

/// What was measured that the host does for a packet of NF `at` on the GPU: between what it is alone there and what it
/// is beside all that may be there, with which it shares moves.
double measured_host_ns(std::span<const NfOptions> nfs, OnGpu const& on_gpu, std::size_t at) {
  NfOptions const& nf = nfs[at];
  if (!nf.gpu) {
    return 0;
  }
  int may_be_beside = 0;
  int are_beside = 0;
  const auto count = [&](std::size_t beside) {
    may_be_beside += nfs[beside].gpu ? 1 : 0;
    are_beside += nfs[beside].gpu && on_gpu[beside] ? 1 : 0;
  };
  if (at > 0) {
    count(at - 1);
  }
  if (at + 1 < nfs.size()) {
    count(at + 1);
  }
  const double together = nf.gpu->cpu_ns_per_packet;
  const double alone = nf.host_alone_ns.value_or(together);
  return may_be_beside == 0 ? together : alone + (together - alone) * are_beside / may_be_beside;
}

/// What the CPU does for a packet of each NF.
std::vector<double> work_of(std::span<const NfOptions> nfs, OnGpu const& on_gpu, std::span<const NfMoves> moves) {
  std::vector<double> work;
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    const bool is_after_gpu = i > 0 && on_gpu[i - 1] && nfs[i].after_gpu_ns && nfs[i].cpu_ns;
    work.push_back(on_gpu[i]      ? std::max(moves[i].cpu_ns, measured_host_ns(nfs, on_gpu, i))
                   : is_after_gpu ? *nfs[i].after_gpu_ns
                                  : nfs[i].cpu_ns.value_or(0));
  }
  return work;
}

/// With the transfers of a plan instead of those that were measured, and the host's part of them.
NfCost with_moves(NfCost cost, NfMoves const& moves, double host_ns) {
  cost.transfer = {0, moves.to_device_ns + moves.to_host_ns + host_ns};
  return cost;
}

/// What an NF achieves with a part of the GPU.
struct Offer {
  Share share;
  double packets_per_s = 0;
};

std::optional<Offer> offer(NfCost const& cost, double limit_ns, std::uint32_t sms, Machine const& machine) {
  std::optional<Share> share = fullest_share(cost, limit_ns, sms);
  if (!share || machine.launch_packets < sms) {
    return std::nullopt;
  }
  share->packets_per_sm = std::min(share->packets_per_sm, machine.launch_packets / sms);
  const auto packets = static_cast<double>(share->batch());
  const double in_flight = double{1} * machine.launches_in_flight * machine.shards;
  const double kernel_ns = cost.kernel.intercept + cost.kernel.slope * share->packets_per_sm;
  return Offer{*share, packets * std::min(in_flight * per_second(latency_ns(cost, *share)), per_second(kernel_ns))};
}

/// Offers for rising numbers of SMs, each faster than the one before.
std::vector<Offer> offers(NfCost const& cost, double limit_ns, Machine const& machine) {
  std::vector<Offer> all;
  for (std::uint32_t sms = 1; sms <= machine.sms; ++sms) {
    const std::optional<Offer> next = offer(cost, limit_ns, sms, machine);
    if (next && (all.empty() || next->packets_per_s > all.back().packets_per_s)) {
      all.push_back(*next);
    }
  }
  return all;
}

/// NFs that share the GPU, and which of its offers each has.
struct Sharing {
  std::vector<std::size_t> nfs;
  std::vector<std::vector<Offer>> offers;
  std::vector<std::size_t> taken;

  Offer const& of(std::size_t i) const { return offers[i][taken[i]]; }
  std::size_t slowest() const {
    std::size_t found = 0;
    for (std::size_t i = 1; i < nfs.size(); ++i) {
      found = of(i).packets_per_s < of(found).packets_per_s ? i : found;
    }
    return found;
  }
};

/// Hands out the SMs: nobody can be faster without making a slower one slower still. False: there are too few.
bool balance(std::uint32_t sms, Sharing& sharing) {
  sharing.taken.assign(sharing.nfs.size(), 0);
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < sharing.nfs.size(); ++i) {
    used += sharing.of(i).share.sms;
  }
  while (used < sms) {
    const std::size_t slowest = sharing.slowest();
    if (sharing.taken[slowest] + 1 == sharing.offers[slowest].size()) {
      break;
    }
    const std::uint32_t more =
        sharing.offers[slowest][sharing.taken[slowest] + 1].share.sms - sharing.of(slowest).share.sms;
    if (used + more > sms) {
      break;
    }
    used += more;
    ++sharing.taken[slowest];
  }
  return used <= sms;
}

void limit_to(double packets_per_s, Estimate::Limit limit, std::size_t nf, Estimate& result) {
  if (packets_per_s < result.packets_per_s) {
    result.packets_per_s = packets_per_s;
    result.limit = limit;
    result.nf = nf;
  }
}

void does_not_fit(Estimate::Limit limit, std::size_t nf, Estimate& result) {
  result.packets_per_s = 0;
  result.limit = limit;
  result.nf = nf;
}

/// What the NFs on the GPU allow, if they have room.
void add_gpu(std::span<const NfOptions> nfs, Machine const& machine, OnGpu const& on_gpu,
             std::span<const NfMoves> moves, std::span<const double> work, Estimate& result) {
  Sharing sharing;
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    if (!on_gpu[i] || !nfs[i].gpu) {
      continue;
    }
    sharing.nfs.push_back(i);
    sharing.offers.push_back(offers(with_moves(*nfs[i].gpu, moves[i], work[i]), nfs[i].latency_limit_ns, machine));
    if (sharing.offers.back().empty()) {
      return does_not_fit(Estimate::Limit::kLatency, i, result);
    }
  }
  if (sharing.nfs.empty()) {
    return;
  }
  if (!balance(machine.sms, sharing)) {
    return does_not_fit(Estimate::Limit::kSms, sharing.nfs.back(), result);
  }
  for (std::size_t i = 0; i < sharing.nfs.size(); ++i) {
    const std::size_t nf = sharing.nfs[i];
    result.shares[nf] = sharing.of(i).share;
    result.nf_ns[nf] = kNsPerS / sharing.of(i).packets_per_s;
    limit_to(sharing.of(i).packets_per_s, Estimate::Limit::kGpu, nf, result);
  }
}

std::size_t gpu_nfs(OnGpu const& on_gpu) {
  return static_cast<std::size_t>(std::count(on_gpu.begin(), on_gpu.end(), true));
}

/// A placement with what it achieves.
struct Candidate {
  OnGpu on_gpu;
  Estimate estimate;

  bool is_better_than(Candidate const& other) const {
    const double speed = estimate.without_ends;
    const double before = other.estimate.without_ends;
    if (estimate.fits() != other.estimate.fits()) {
      return estimate.fits();
    }
    if (speed > before * (1 + kSame) || before > speed * (1 + kSame)) {
      return speed > before;
    }
    return gpu_nfs(on_gpu) < gpu_nfs(other.on_gpu);
  }
};

/// The search for a placement.
class Search {
 public:
  Search(std::span<const NfOptions> nfs, Machine const& machine, Price const& price)
      : nfs_(nfs), machine_(machine), price_(price) {
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      const bool is_open = nfs[i].where == NfOptions::Where::kEither;
      fixed_.push_back(nfs[i].where == NfOptions::Where::kGpu);
      if (is_open && machine.sms > 0 && nfs[i].cpu_ns && nfs[i].gpu) {
        free_.push_back(i);
      }
    }
  }

  Result<PartitionPlacement> run() {
    CATENA_ASSIGN_OR_RETURN(const Candidate all_cpu, candidate(fixed_));
    OnGpu most = fixed_;
    for (const std::size_t nf : free_) {
      most[nf] = true;
    }
    CATENA_ASSIGN_OR_RETURN(const Candidate all_gpu, candidate(most));
    Result<Candidate> best = free_.size() <= kMaxExhaustive ? best_of_all(all_cpu) : in_steps(all_cpu, all_gpu);
    CATENA_RETURN_IF_ERROR(best.status());
    PartitionPlacement result{best->on_gpu, best->estimate, all_cpu.estimate, all_gpu.estimate, {}, {}};
    CATENA_RETURN_IF_ERROR(explain(result));
    return result;
  }

 private:
  Result<Candidate> candidate(OnGpu on_gpu) const {
    CATENA_ASSIGN_OR_RETURN(const std::vector<NfMoves> moves, price_(on_gpu));
    Estimate found = estimate(nfs_, machine_, on_gpu, moves);
    return Candidate{std::move(on_gpu), std::move(found)};
  }
  Result<Candidate> changed(OnGpu on_gpu, std::size_t nf) const {
    on_gpu[nf] = !on_gpu[nf];
    return candidate(std::move(on_gpu));
  }
  Result<Candidate> best_of_all(Candidate best) const {
    for (std::uint32_t set = 1; set < 1U << free_.size(); ++set) {
      OnGpu on_gpu = fixed_;
      for (std::size_t i = 0; i < free_.size(); ++i) {
        on_gpu[free_[i]] = (set >> i & 1U) != 0;
      }
      CATENA_ASSIGN_OR_RETURN(Candidate next, candidate(std::move(on_gpu)));
      if (next.is_better_than(best)) {
        best = std::move(next);
      }
    }
    return best;
  }
  Result<Candidate> in_steps(Candidate const& all_cpu, Candidate const& all_gpu) const {
    CATENA_ASSIGN_OR_RETURN(Candidate from_cpu, climb(all_cpu));
    CATENA_ASSIGN_OR_RETURN(Candidate from_gpu, climb(all_gpu));
    return from_gpu.is_better_than(from_cpu) ? from_gpu : from_cpu;
  }
  Result<Candidate> climb(Candidate now) const {
    for (;;) {
      Candidate best = now;
      for (const std::size_t nf : free_) {
        CATENA_ASSIGN_OR_RETURN(Candidate next, changed(now.on_gpu, nf));
        if (next.is_better_than(best)) {
          best = std::move(next);
        }
      }
      if (best.on_gpu == now.on_gpu) {
        return now;
      }
      now = std::move(best);
    }
  }
  Status explain(PartitionPlacement& result) const {
    result.otherwise.resize(nfs_.size());
    for (std::size_t i = 0; i < nfs_.size(); ++i) {
      const bool is_open = nfs_[i].where == NfOptions::Where::kEither;
      result.reasons.push_back(!is_open                          ? Reason::kFixed
                               : machine_.sms == 0               ? Reason::kNoGpu
                               : !nfs_[i].cpu_ns || !nfs_[i].gpu ? Reason::kNotKnown
                                                                 : Reason::kFaster);
    }
    for (const std::size_t nf : free_) {
      CATENA_ASSIGN_OR_RETURN(const Candidate other, changed(result.on_gpu, nf));
      result.otherwise[nf] = other.estimate;
      if (!result.on_gpu[nf]) {
        using Limit = Estimate::Limit;
        const bool is_late = other.estimate.limit == Limit::kLatency && other.estimate.nf == nf;
        result.reasons[nf] = is_late ? Reason::kLatency : other.estimate.fits() ? Reason::kNotFaster : Reason::kFull;
      }
    }
    return absl::OkStatus();
  }

  std::span<const NfOptions> nfs_;
  Machine const& machine_;
  Price const& price_;
  OnGpu fixed_;                    ///< what may be on either is on the CPU
  std::vector<std::size_t> free_;  ///< what may go to the GPU
};

}  // namespace

Estimate estimate(std::span<const NfOptions> nfs, Machine const& machine, OnGpu const& on_gpu,
                  std::span<const NfMoves> moves) {
  Estimate result;
  result.packets_per_s = kInfinite;
  result.nf_ns.assign(nfs.size(), 0);
  result.shares.resize(nfs.size());
  double work_ns = machine.rx_ns + machine.tx_ns;
  NfMoves bus;
  const std::vector<double> work = work_of(nfs, on_gpu, moves);
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    result.nf_ns[i] = on_gpu[i] ? 0 : work[i];
    work_ns += work[i];
    bus.to_device_ns += moves[i].to_device_ns;
    bus.to_host_ns += moves[i].to_host_ns;
    limit_to(machine.shards * per_second(work[i]), Estimate::Limit::kNf, i, result);
  }
  limit_to(machine.workers * per_second(work_ns), Estimate::Limit::kWorkers, 0, result);
  limit_to(per_second(std::max(bus.to_device_ns, bus.to_host_ns)), Estimate::Limit::kBus, 0, result);
  add_gpu(nfs, machine, on_gpu, moves, work, result);
  result.without_ends = result.packets_per_s;
  limit_to(machine.ends * per_second(machine.rx_ns), Estimate::Limit::kRx, 0, result);
  limit_to(machine.ends * per_second(machine.tx_ns), Estimate::Limit::kTx, 0, result);
  return result;
}

Result<PartitionPlacement> place(std::span<const NfOptions> nfs, Machine const& machine, Price const& price) {
  return Search(nfs, machine, price).run();
}

}  // namespace catena::share
