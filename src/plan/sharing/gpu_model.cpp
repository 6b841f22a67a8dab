// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/gpu_model.hpp"

#include <algorithm>
#include <cmath>

namespace catena::share {
namespace {

constexpr double kNsPerSecond = 1e9;

/// Of a launch without packets.
double fixed_ns(NfCost const& cost) { return cost.kernel.intercept + cost.transfer.intercept + cost.overhead_ns; }

/// That one more packet for each of `sms` SMs takes.
double step_ns(NfCost const& cost, std::uint32_t sms) { return cost.kernel.slope + cost.transfer.slope * sms; }

}  // namespace

double latency_ns(NfCost const& cost, Share share) {
  return fixed_ns(cost) + step_ns(cost, share.sms) * share.packets_per_sm;
}

double packets_per_s(NfCost const& cost, Share share) {
  return static_cast<double>(share.batch()) / latency_ns(cost, share) * kNsPerSecond;
}

std::optional<std::uint32_t> least_packets_per_sm(NfCost const& cost, double wanted, std::uint32_t sms) {
  const double per_ns = wanted / kNsPerSecond;
  const double denominator = sms - per_ns * step_ns(cost, sms);
  if (!(denominator > 0)) {
    return std::nullopt;
  }
  const double packets = std::max(1.0, std::ceil(per_ns * fixed_ns(cost) / denominator));
  if (!(packets <= cost.max_packets_per_sm)) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(packets);
}

std::optional<Share> least_share(NfCost const& cost, double wanted, double limit_ns, std::uint32_t max_sms,
                                 std::uint32_t step) {
  for (std::uint32_t sms = step; sms <= max_sms; sms += step) {
    const std::optional<std::uint32_t> packets = least_packets_per_sm(cost, wanted, sms);
    if (packets && latency_ns(cost, {sms, *packets}) <= limit_ns) {
      return Share{sms, *packets};
    }
  }
  return std::nullopt;
}

std::optional<Share> fullest_share(NfCost const& cost, double limit_ns, std::uint32_t sms) {
  const double room = limit_ns - fixed_ns(cost);
  const double each = step_ns(cost, sms);
  const double most = each > 0 ? std::floor(room / each) : room >= 0 ? cost.max_packets_per_sm : 0.0;
  if (!(most >= 1)) {
    return std::nullopt;
  }
  return Share{sms, static_cast<std::uint32_t>(std::min<double>(most, cost.max_packets_per_sm))};
}

Fit fit(std::span<const plan::Point> points) {
  Fit result{plan::fit_line(points)};
  double mean = 0;
  for (plan::Point const& point : points) {
    mean += point.y / static_cast<double>(points.size());
  }
  double missed = 0;
  double all = 0;
  for (plan::Point const& point : points) {
    const double error = point.y - (result.line.intercept + result.line.slope * point.x);
    missed += error * error;
    all += (point.y - mean) * (point.y - mean);
  }
  if (all > 0) {
    result.r_squared = 1 - missed / all;
  }
  return result;
}

}  // namespace catena::share
