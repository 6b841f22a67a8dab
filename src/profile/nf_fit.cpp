// SPDX-License-Identifier: Apache-2.0
#include "profile/nf_fit.hpp"

#include <algorithm>
#include <cmath>

namespace catena::profile {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kPercentOfPrediction = 100;
constexpr double kLeastNs = 1;  // a line is fitted through times above 0

double at(plan::Line const& line, double x) { return line.intercept + line.slope * x; }

double error_percent(double predicted, double measured) {
  return (predicted - measured) / measured * kPercentOfPrediction;
}

LineFit fit_of(std::span<const plan::Point> points) {
  LineFit result{share::fit(points)};
  for (plan::Point const& point : points) {
    const double percent = error_percent(at(result.fit.line, point.x), point.y);
    if (std::abs(percent) > std::abs(result.worst_percent)) {
      result.worst_percent = percent;
      result.worst_at = point.x;
    }
  }
  return result;
}

/// Time over packets of an SM.
std::vector<plan::Point> kernel_points(NfTimes const& times, std::uint32_t sms) {
  std::vector<plan::Point> points;
  for (KernelPoint const& point : times.kernels) {
    if (point.sms == sms) {
      points.push_back({static_cast<double>(point.packets) / sms, std::max(point.kernel_ns, kLeastNs)});
    }
  }
  if (times.kernels.empty()) {
    for (LaunchPoint const& launch : times.launches) {
      points.push_back({static_cast<double>(launch.packets) / sms, std::max(launch.kernel_ns, kLeastNs)});
    }
  }
  return points;
}

}  // namespace

NfModel model_of(NfTimes const& times) {
  NfModel model;
  if (times.launches.empty() || times.sms == 0) {
    return model;
  }
  const auto smallest = std::ranges::min_element(times.kernels, {}, &KernelPoint::sms);
  model.kernel_sms = smallest == times.kernels.end() ? times.sms : smallest->sms;
  const std::vector<plan::Point> kernels = kernel_points(times, model.kernel_sms);
  std::vector<plan::Point> transfers;
  std::vector<plan::Point> rests;
  std::vector<plan::Point> works;
  for (LaunchPoint const& launch : times.launches) {
    const double packets = launch.packets;
    transfers.push_back({packets, std::max(launch.transfer_ns, kLeastNs)});
    rests.push_back({packets, std::max(launch.round_trip_ns - launch.kernel_ns - launch.transfer_ns, kLeastNs)});
    works.push_back({packets, std::max(launch.cpu_ns, kLeastNs)});
  }
  model.kernel = fit_of(kernels);
  model.transfer = fit_of(transfers);
  const plan::Line rest = plan::fit_line(rests);
  model.host_ns_per_packet = rest.slope;
  model.cost.kernel = model.kernel.fit.line;
  model.cost.transfer = model.transfer.fit.line;
  model.cost.transfer.slope += rest.slope;
  model.cost.overhead_ns = rest.intercept;
  model.cost.cpu_ns_per_packet = plan::fit_line(works).slope;
  const double most = std::ranges::max_element(kernels, {}, &plan::Point::x)->x;
  model.cost.max_packets_per_sm = static_cast<std::uint32_t>(std::max(1.0, std::floor(most)));
  return model;
}

double predicted_ns(share::NfCost const& cost, std::uint32_t sms, double packets) {
  return at(cost.kernel, packets / sms) + at(cost.transfer, packets) + cost.overhead_ns;
}

std::vector<Comparison> compare(NfModel const& model, NfTimes const& times) {
  std::vector<Comparison> all;
  for (LaunchPoint const& launch : times.launches) {
    Comparison row;
    row.packets = launch.packets;
    row.measured_ns = std::max(launch.round_trip_ns, kLeastNs);
    row.predicted_ns = std::max(predicted_ns(model.cost, times.sms, launch.packets), kLeastNs);
    row.measured_per_s = launch.packets / row.measured_ns * kNsPerSecond;
    row.predicted_per_s = launch.packets / row.predicted_ns * kNsPerSecond;
    row.latency_error_percent = error_percent(row.predicted_ns, row.measured_ns);
    row.throughput_error_percent = error_percent(row.predicted_per_s, row.measured_per_s);
    all.push_back(row);
  }
  return all;
}

}  // namespace catena::profile
