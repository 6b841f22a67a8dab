// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "share/gpu_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// From measured times of an NF's launches to its performance model. Pure functions, any thread.
namespace catena::profile {

/// Launches of as many packets, all on the whole device; medians, in ns.
struct LaunchPoint {
  std::uint32_t packets = 0;  ///< that the NF decided
  double kernel_ns = 0;
  double transfer_ns = 0;    ///< on the device's time line, in front of the kernel and behind it
  double round_trip_ns = 0;  ///< from handing the launch over to having its results in the packets
  double cpu_ns = 0;         ///< that the host works: in front of that, handing over, and with the results
};

/// The kernel alone on a part of the device; medians, in ns.
struct KernelPoint {
  std::uint32_t sms = 0;
  std::uint32_t packets = 0;
  double kernel_ns = 0;
};

/// All that was measured of an NF for packets of one size.
struct NfTimes {
  std::uint32_t sms = 0;              ///< compute units of the device
  std::vector<LaunchPoint> launches;  ///< packets rise
  std::vector<KernelPoint> kernels;   ///< empty where the device cannot be divided
};

/// A line, and where it is worst.
struct LineFit {
  share::Fit fit;
  double worst_percent = 0;  ///< (line - measured) / measured of the point where that is largest
  double worst_at = 0;       ///< its packets: of an SM, or of a launch
};

struct NfModel {
  share::NfCost cost;
  LineFit kernel;                ///< over the packets of one SM
  std::uint32_t kernel_sms = 0;  ///< those that `kernel` was measured on
  LineFit transfer;              ///< over the packets of a launch, on the device's time line alone
  /// What the host does for a packet of a launch (into staging and out of it), which cost.transfer has in its slope.
  double host_ns_per_packet = 0;
};

/// The model: the kernel's line over the packets of an SM on the smallest part of the device that was measured, else on
/// all of it; that of the transfers; and of what a round trip has beside both, the part that grows with the packets
/// (the host's) and the rest, C; and of the host's own work what grows with the packets. The first step of the kernel
/// is taken to reach as far as was measured. No launch at all: everything is 0.
NfModel model_of(NfTimes const& times);

/// Equation 4 of a launch of `packets` packets on `sms` SMs, which the packets are spread over evenly.
double predicted_ns(share::NfCost const& cost, std::uint32_t sms, double packets);

/// The model beside a measured launch on the whole device.
struct Comparison {
  std::uint32_t packets = 0;
  double measured_ns = 0;
  double predicted_ns = 0;
  double measured_per_s = 0;  ///< packets, of launches that follow one another
  double predicted_per_s = 0;
  double latency_error_percent = 0;
  double throughput_error_percent = 0;
};
std::vector<Comparison> compare(NfModel const& model, NfTimes const& times);

}  // namespace catena::profile
