// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/scheduler.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace catena::share {
namespace {

constexpr double kMinPps = 1;
constexpr double kChangePercent = 10;
constexpr double kPercent = 100;
constexpr std::array<std::pair<Mode, std::string_view>, 4> kNames{{{Mode::kScheduled, "scheduled"},
                                                                   {Mode::kFair, "fair"},
                                                                   {Mode::kUncoordinated, "uncoordinated"},
                                                                   {Mode::kTemporal, "temporal"}}};

constexpr std::array<std::pair<Parts, std::string_view>, 3> kPartNames{
    {{Parts::kGreen, "green"}, {Parts::kBlocks, "blocks"}, {Parts::kNone, "none"}}};

bool is_cost(double value) { return std::isfinite(value) && value >= 0; }

Status check(NfDemand const& nf, std::size_t nfs) {
  NfCost const& cost = nf.cost;
  const bool is_sound = is_cost(cost.kernel.intercept) && is_cost(cost.kernel.slope) &&
                        is_cost(cost.transfer.intercept) && is_cost(cost.transfer.slope) && is_cost(cost.overhead_ns) &&
                        cost.max_packets_per_sm > 0 && is_cost(nf.packets_per_s) && is_cost(nf.latency_limit_ns) &&
                        is_cost(nf.needed_pps.value_or(0));
  // a launch takes time: else an NF would be infinitely fast
  if (!is_sound || latency_ns(cost, {1, 1}) <= 0) {
    return absl::InvalidArgumentError(concat("NF ", nf.name,
                                             ": costs, speed and limit are numbers from 0 on, and a "
                                             "launch takes some time"));
  }
  const auto unknown = std::find_if(nf.next.begin(), nf.next.end(), [nfs](std::size_t next) { return next >= nfs; });
  if (unknown != nf.next.end()) {
    return absl::InvalidArgumentError(concat("NF ", nf.name, ": unknown downstream NF ", *unknown));
  }
  return absl::OkStatus();
}

/// NFs in such an order that those behind an NF come before it.
Result<std::vector<std::size_t>> last_first(std::span<const NfDemand> nfs) {
  std::vector<std::size_t> order;
  std::vector<bool> is_done(nfs.size(), false);
  while (order.size() < nfs.size()) {
    const std::size_t before = order.size();
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      const auto is_known = [&is_done](std::size_t next) { return is_done[next]; };
      if (!is_done[i] && std::all_of(nfs[i].next.begin(), nfs[i].next.end(), is_known)) {
        is_done[i] = true;
        order.push_back(i);
      }
    }
    if (order.size() == before) {
      const auto open = std::find(is_done.begin(), is_done.end(), false) - is_done.begin();
      return absl::InvalidArgumentError(
          concat("NF ", nfs[static_cast<std::size_t>(open)].name, " is downstream of itself, or of such an NF"));
    }
  }
  return order;
}

/// How an NF's need bounds what it is to achieve.
enum class Goal : std::uint8_t {
  kNeeded,  ///< no more than it needs
  kBeyond,  ///< no less
};

double with_need(NfDemand const& nf, double wanted, Goal goal) {
  if (!nf.needed_pps) {
    return wanted;
  }
  const double needed = std::max(*nf.needed_pps, kMinPps);
  return goal == Goal::kNeeded ? std::min(wanted, needed) : std::max(wanted, needed);
}

/// Parts that are handed out in rounds, to the NFs of several chains.
class Rounds {
 public:
  /// `order`: those behind an NF come before it.
  Rounds(std::span<const NfDemand> nfs, std::vector<std::size_t> order, GpuShape gpu, double growth, double max_pps)
      : nfs_(nfs), order_(std::move(order)), gpu_(gpu), growth_(growth), max_pps_(max_pps) {}

  Result<Schedule> run() {
    double wanted = slowest();
    Schedule all{std::vector<Share>(nfs_.size()), std::vector<double>(nfs_.size())};
    while (!take(order_, wanted, Goal::kNeeded, all)) {
      if (wanted <= kMinPps) {
        return no_room();
      }
      wanted = std::max(wanted / (1 + growth_), kMinPps);
    }
    std::vector<std::vector<std::size_t>> open = chains();
    while (!open.empty() && wanted < max_pps_) {
      wanted = std::min(wanted * (1 + growth_), max_pps_);
      std::erase_if(open, [&](std::vector<std::size_t> const& chain) { return !raise(chain, wanted, all); });
    }
    if (has_all(all)) {
      double least = least_need();
      while (least < max_pps_ && take(order_, std::min(least * (1 + growth_), max_pps_), Goal::kBeyond, all)) {
        least = std::min(least * (1 + growth_), max_pps_);
      }
    }
    return all;
  }

 private:
  /// The speed of the slowest NF, with which the first round begins.
  double slowest() const {
    double slowest = max_pps_;
    for (NfDemand const& nf : nfs_) {
      slowest = std::min(slowest, std::max(nf.packets_per_s, kMinPps));
    }
    return slowest;
  }
  double least_need() const {
    double least = max_pps_;
    for (NfDemand const& nf : nfs_) {
      least = std::min(least, with_need(nf, max_pps_, Goal::kNeeded));
    }
    return least;
  }
  /// Whether every NF is as fast as it needs to be.
  bool has_all(Schedule const& all) const {
    for (std::size_t i = 0; i < nfs_.size(); ++i) {
      if (nfs_[i].next.empty() && (!nfs_[i].needed_pps || all.wanted_pps[i] < *nfs_[i].needed_pps)) {
        return false;
      }
    }
    return true;
  }
  /// The NFs of each chain, in the order.
  std::vector<std::vector<std::size_t>> chains() const {
    std::map<std::size_t, std::vector<std::size_t>> of_chain;
    for (const std::size_t i : order_) {
      of_chain[nfs_[i].chain].push_back(i);
    }
    std::vector<std::vector<std::size_t>> all;
    std::transform(of_chain.begin(), of_chain.end(), std::back_inserter(all),
                   [](auto const& entry) { return entry.second; });
    return all;
  }

  /// One round: shares of `order` for `wanted` packets a second at each last NF, beside those that others have in
  /// `all`. False, and nothing changes: the GPU has not so many SMs.
  bool take(std::span<const std::size_t> order, double wanted, Goal goal, Schedule& all) const {
    Schedule next = all;
    for (const std::size_t i : order) {
      next.shares[i] = {};
    }
    std::uint32_t left = gpu_.sms;
    for (Share const& share : next.shares) {
      left -= share.sms;
    }
    for (const std::size_t i : order) {
      double sum = nfs_[i].next.empty() ? wanted : 0;
      for (const std::size_t behind : nfs_[i].next) {
        sum += next.wanted_pps[behind];
      }
      next.wanted_pps[i] = with_need(nfs_[i], sum, goal);
      const std::optional<Share> share =
          least_share(nfs_[i].cost, next.wanted_pps[i], nfs_[i].latency_limit_ns, left, gpu_.step);
      if (!share) {
        return false;
      }
      next.shares[i] = *share;
      left -= share->sms;
    }
    all = std::move(next);
    return true;
  }

  /// The next round of a chain. False: it has no SMs for that, or what its NFs need.
  bool raise(std::span<const std::size_t> chain, double wanted, Schedule& all) const {
    const std::vector<double> before = all.wanted_pps;
    return take(chain, wanted, Goal::kNeeded, all) && all.wanted_pps != before;
  }

  Status no_room() const {
    for (NfDemand const& nf : nfs_) {
      if (!least_share(nf.cost, kMinPps, nf.latency_limit_ns, gpu_.sms, gpu_.step)) {
        return absl::ResourceExhaustedError(concat("NF ", nf.name, ": no launch ends within its latency limit of ",
                                                   nf.latency_limit_ns, " ns, whatever part of the GPU it has"));
      }
    }
    return absl::ResourceExhaustedError(
        concat(gpu_.sms, " SMs in parts of ", gpu_.step, " do not do for ", nfs_.size(), " NFs"));
  }

  std::span<const NfDemand> nfs_;
  std::vector<std::size_t> order_;
  GpuShape gpu_;
  double growth_;
  double max_pps_;
};

Result<Schedule> with_given_sms(std::span<const NfDemand> nfs, std::span<const std::uint32_t> sms) {
  Schedule result{{}, std::vector<double>(nfs.size(), 0)};
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    const std::optional<Share> share = fullest_share(nfs[i].cost, nfs[i].latency_limit_ns, sms[i]);
    if (!share) {
      return absl::ResourceExhaustedError(concat("NF ", nfs[i].name, ": no launch on ", sms[i],
                                                 " SMs ends within its latency limit of ", nfs[i].latency_limit_ns,
                                                 " ns"));
    }
    result.shares.push_back(*share);
  }
  return result;
}

}  // namespace

std::string_view to_string(Mode mode) { return kNames[static_cast<std::size_t>(mode)].second; }

Result<Mode> parse_mode(std::string_view name) {
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [name](auto const& entry) { return entry.second == name; });
  if (found == kNames.end()) {
    return absl::InvalidArgumentError(
        concat("'", name, "' is no way to share a GPU; write scheduled, fair, uncoordinated or temporal"));
  }
  return found->first;
}

std::string_view to_string(Parts parts) { return kPartNames[static_cast<std::size_t>(parts)].second; }

Result<Parts> parse_parts(std::string_view name) {
  const auto found =
      std::find_if(kPartNames.begin(), kPartNames.end(), [name](auto const& entry) { return entry.second == name; });
  if (found == kPartNames.end()) {
    return absl::InvalidArgumentError(
        concat("'", name, "' is not a kind of SM partition; write green, blocks or none"));
  }
  return found->first;
}

Result<Schedule> schedule(Mode mode, std::span<const NfDemand> nfs, GpuShape gpu, double growth, double max_pps) {
  if (!(growth > 0 && growth < 1) || gpu.step == 0 || !(max_pps >= kMinPps)) {
    return absl::InvalidArgumentError(concat("a growth of ", growth, ", steps of ", gpu.step, " SMs and at most ",
                                             max_pps,
                                             " packets per second; growth is between 0 and 1, the others are "
                                             "1 or more"));
  }
  for (NfDemand const& nf : nfs) {
    CATENA_RETURN_IF_ERROR(check(nf, nfs.size()));
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::size_t> order, last_first(nfs));
  if (nfs.empty()) {
    return Schedule{};
  }
  if (mode == Mode::kScheduled) {
    return Rounds(nfs, order, gpu, growth, max_pps).run();
  }
  const std::uint32_t parts = gpu.sms / gpu.step;
  if (parts < (mode == Mode::kFair ? nfs.size() : 1)) {
    return absl::ResourceExhaustedError(
        concat(gpu.sms, " SMs in parts of ", gpu.step, " do not do for ", nfs.size(), " NFs"));
  }
  std::vector<std::uint32_t> sms(nfs.size(), parts * gpu.step);
  if (mode == Mode::kFair) {
    const auto count = static_cast<std::uint32_t>(nfs.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      sms[i] = (parts / count + (i < parts % count ? 1 : 0)) * gpu.step;
    }
  }
  return with_given_sms(nfs, sms);
}

bool TrafficChange::is_away(std::span<const double> packets_per_s) const {
  return !std::equal(
      packets_per_s.begin(), packets_per_s.end(), scheduled_.begin(), scheduled_.end(),
      [](double now, double before) { return std::abs(now - before) <= before * kChangePercent / kPercent; });
}

bool TrafficChange::look(std::span<const double> packets_per_s) {
  const bool is_first = scheduled_.empty();
  const bool is_away = this->is_away(packets_per_s);
  const bool has_changed = is_first || (is_away && was_away_);
  if (has_changed) {
    scheduled_.assign(packets_per_s.begin(), packets_per_s.end());
  }
  was_away_ = is_away && !has_changed;
  return has_changed;
}

}  // namespace catena::share
