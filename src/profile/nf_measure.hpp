// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "chain/planning.hpp"
#include "gpu/device/device.hpp"
#include "nf/registry.hpp"
#include "profile/cost_measure.hpp"
#include "profile/ends_measure.hpp"
#include "profile/nf_fit.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Measures the costs of the NFs of a chain on a device.
namespace catena::profile {

/// Packets per launch: powers of two from kLeastBatch to kMaxBatch.
inline constexpr std::uint32_t kLeastBatch = 64;
inline constexpr std::uint32_t kMaxBatch = 16'384;
/// Timed launches for each number of packets, after two untimed ones; and passes on the CPU.
inline constexpr std::uint32_t kNfRepeats = 7;
/// Maximum number of packets of a pass on the CPU.
inline constexpr std::uint32_t kCpuPassPackets = 4'096;

struct NfMeasureOptions {
  std::vector<std::uint32_t> packet_bytes = {64, 512, 1518};  ///< of frames, without FCS
  std::uint32_t max_packets = kMaxBatch;                      ///< per launch; at least kLeastBatch
  /// Approximate total time, divided equally among the packet sizes; but launches of three numbers of packets are
  /// always measured.
  std::chrono::nanoseconds limit = std::chrono::seconds(60);
};

/// An NF of the chain with `on: gpu` or `on: auto`, on the device, with packets of one size.
struct NfMeasurement {
  std::string name;
  chain::NfKey key;
  std::uint32_t packet_bytes = 0;
  NfTimes times;
  /// As chain::MeasuredNf, from a line that may be level after few measurements; nullopt: the device had no room for it
  /// alone.
  std::optional<double> host_alone_ns = std::nullopt;
  std::string why_not;  ///< why it has no times; else empty
};

/// Any NF of the chain on one core, with packets of one size.
struct CpuMeasurement {
  std::string name;
  chain::NfKey key;
  std::uint32_t packet_bytes = 0;
  double ns_per_packet = 0;   ///< per processed packet; the median of kNfRepeats passes
  double spread_percent = 0;  ///< as chain::MeasuredOnCpu
  double after_gpu_ns = 0;    ///< the same; 0: no NF before it may be on the device
  std::string why_not;        ///< why it has no time; else empty
};

/// Rx and tx of a chain on one core, with packets of one size.
struct EndsMeasurement {
  std::uint32_t packet_bytes = 0;
  EndTimes times;
};

struct NfMeasurements {
  std::vector<NfMeasurement> nfs;      ///< by packet size, then in chain order
  std::vector<CpuMeasurement> on_cpu;  ///< the same, of all NFs
  std::vector<EndsMeasurement> ends;   ///< by packet size
  std::string traffic;                 ///< description of the packets
  std::string why_no_parts;            ///< why the kernels were measured on the whole device only; else empty
  std::vector<std::string> notes;      ///< omitted measurements
};

/// Sends generated packets through the chain's NFs in their order, repeatedly. Times each launch of the NFs with `on:
/// gpu` or `on: auto`, and every NF on the CPU: with its configuration, its rule files and the packets as left by the
/// NFs before it. `sync` configures the planning; packets are assumed to have the size at hand. Each number of packets
/// has the median of kNfRepeats launches, one at a time. NFs with `isolation: process` are measured in this process.
/// The effect of alternating NFs on the CPU and on the device is measured with every second NF on the device, and then
/// with the others; rx and tx are measured by themselves. If the device can be divided, kernels are also timed alone on
/// 8, 16, 32 and 64 of its compute units and on all, over the packets present then.
///
/// `observer`: as measure(). Nothing else should run on the machine and the device meanwhile. Thread rule: as a Device.
/// Errors: as chain::make_instance(), plan_input(), make_generator(), kernel::DeviceNf::create() and Launch;
/// InvalidArgument: the chain has an NF that writes a file, or a plugin; DataLoss: a kernel read or wrote out of
/// bounds; DeadlineExceeded: the device hangs, and is abandoned.
Result<NfMeasurements> measure_nfs(device::Device& device, chain::ChainConfig const& config,
                                   nf::Registry const& registry, chain::SyncOptions const& sync,
                                   NfMeasureOptions const& options, MeasureObserver const& observer);

/// Puts the successful measurements into the profile, in place of older ones of the same NFs and sizes.
void keep(NfMeasurements const& results, chain::CostProfile& profile);

}  // namespace catena::profile
