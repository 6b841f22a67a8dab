// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/sharing/gpu_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Fits the performance model of an NF to the measured times of its launches. Pure functions, any thread.
namespace catena::profile {

/// Launches with the same number of packets, all on the whole device; medians, in ns.
struct LaunchPoint {
  std::uint32_t packets = 0;  ///< processed by the NF
  double kernel_ns = 0;
  double transfer_ns = 0;    ///< on the device's timeline, before and after the kernel
  double round_trip_ns = 0;  ///< from submission to the results in the packets
  double cpu_ns = 0;         ///< work of the host: before and during submission, and with the results
};

/// The kernel alone on an SM partition; medians, in ns.
struct KernelPoint {
  std::uint32_t sms = 0;
  std::uint32_t packets = 0;
  double kernel_ns = 0;
};

/// All measurements of an NF for packets of one size.
struct NfTimes {
  std::uint32_t sms = 0;              ///< compute units of the device
  std::vector<LaunchPoint> launches;  ///< in ascending order of packets
  std::vector<KernelPoint> kernels;   ///< empty if the device cannot be divided
};

/// A line, and its worst point.
struct LineFit {
  share::Fit fit;
  double worst_percent = 0;  ///< (line - measured) / measured at the point with the largest error
  double worst_at = 0;       ///< packets of this point: per SM, or per launch
};

struct NfModel {
  share::NfCost cost;
  LineFit kernel;                ///< over the packets of one SM
  std::uint32_t kernel_sms = 0;  ///< SMs of the measurement of `kernel`
  LineFit transfer;              ///< over the packets of a launch, on the device's timeline alone
  /// The host's work per packet of a launch (into staging and out of it), part of the slope of cost.transfer.
  double host_ns_per_packet = 0;
};

/// The model: the kernel's line over the packets of an SM on the smallest measured part of the device, else on the
/// whole device; the line of the transfers; and the rest of a round trip, as the part growing with the packets (the
/// host's) and a constant, C; and of the host's own work the part growing with the packets. The first step of the
/// kernel is assumed to reach as far as the measurement. Without launches everything is 0.
NfModel model_of(NfTimes const& times);

/// Equation 4 for a launch of `packets` packets, spread evenly over `sms` SMs.
double predicted_ns(share::NfCost const& cost, std::uint32_t sms, double packets);

/// The model compared with a measured launch on the whole device.
struct Comparison {
  std::uint32_t packets = 0;
  double measured_ns = 0;
  double predicted_ns = 0;
  double measured_per_s = 0;  ///< packets, of consecutive launches
  double predicted_per_s = 0;
  double latency_error_percent = 0;
  double throughput_error_percent = 0;
};
std::vector<Comparison> compare(NfModel const& model, NfTimes const& times);

}  // namespace catena::profile
