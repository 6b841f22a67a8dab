// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/cost_fit.hpp"

#include <cstdint>
#include <optional>
#include <span>

/// The performance of an NF on a GPU with some of its streaming multiprocessors (SMs), by the model of "G-NET:
/// Effective GPU Sharing in NFV Systems" (NSDI 2018), section 5.2: as long as every SM has the same number of packets,
/// a kernel takes as long on many SMs as on one, and both it and the transfers are linear in their packets. Times are
/// in ns, speeds in packets per second.
///
/// Thread rule: pure functions, any thread.
namespace catena::share {

/// Of one NF with its rules, for packets of one size, on one GPU. No coefficient is negative.
struct NfCost {
  plan::Line kernel;    ///< over the packets of one SM: b1 and k1
  plan::Line transfer;  ///< over all packets of a launch, in both directions: b2 and k2
  /// C of section 5.3: the remaining time of a launch, including the round trip to the device's owner.
  double overhead_ns = 0;
  /// Packets per SM up to which the kernel is linear, its first step; at least 1.
  std::uint32_t max_packets_per_sm = 1024;
  /// Work of a core of the host per packet of a launch, from choosing the packets to having the results in them.
  double cpu_ns_per_packet = 0;
};

/// A part of the GPU, and the packets of a launch on it.
struct Share {
  std::uint32_t sms = 0;             ///< N
  std::uint32_t packets_per_sm = 0;  ///< B0
  std::uint64_t batch() const { return std::uint64_t{sms} * packets_per_sm; }
  bool operator==(Share const&) const = default;
};

/// Equation 4 (equation 1 with C): from submitting a launch to having its results.
double latency_ns(NfCost const& cost, Share share);
/// Equation 2, for consecutive launches.
double packets_per_s(NfCost const& cost, Share share);

/// Equation 3: the fewest packets per SM with which `sms` SMs achieve `wanted` packets per second. Nullopt if no number
/// suffices, because transfers or kernels alone are too slow (the denominator is not above 0), or if it is above
/// cost.max_packets_per_sm. Preconditions: wanted > 0, sms > 0.
std::optional<std::uint32_t> least_packets_per_sm(NfCost const& cost, double wanted, std::uint32_t sms);

/// The fewest SMs, in multiples of `step`, with which the NF achieves `wanted` packets per second and no launch takes
/// longer than `limit_ns`; with the fewest packets per launch. Nullopt if `max_sms` are not enough. Preconditions:
/// wanted > 0, step > 0.
std::optional<Share> least_share(NfCost const& cost, double wanted, double limit_ns, std::uint32_t max_sms,
                                 std::uint32_t step = 1);

/// The most packets per SM on `sms` SMs with which no launch takes longer than `limit_ns`: the launches of an NF with
/// given SMs. Nullopt if a single packet takes longer. Precondition: sms > 0.
std::optional<Share> fullest_share(NfCost const& cost, double limit_ns, std::uint32_t sms);

/// A line through measured times, and the fraction of their variance explained by it: 1 if it goes through all.
struct Fit {
  plan::Line line;
  double r_squared = 1;
};
/// As plan::fit_line().
Fit fit(std::span<const plan::Point> points);

}  // namespace catena::share
