// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "chain/planning.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"
#include "profile/cost_measure.hpp"
#include "profile/ends_measure.hpp"
#include "profile/nf_fit.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Measures what the NFs of a chain cost on a device.
namespace catena::profile {

/// Packets of a launch: powers of two, as few and as many.
inline constexpr std::uint32_t kLeastBatch = 64;
inline constexpr std::uint32_t kMostBatch = 16'384;
/// Of each number of packets, so many launches are timed, after two that are not; and as many passes on the CPU.
inline constexpr std::uint32_t kNfRepeats = 7;
/// Packets of a pass on the CPU, at most.
inline constexpr std::uint32_t kCpuPassPackets = 4'096;

struct NfMeasureOptions {
  std::vector<std::uint32_t> packet_bytes = {64, 512, 1518};  ///< of frames, without FCS
  std::uint32_t most_packets = kMostBatch;                    ///< of a launch; at least kLeastBatch
  /// All is over after about this time, whose parts are the same for each packet size; but never before launches of
  /// three numbers of packets were measured.
  std::chrono::nanoseconds limit = std::chrono::seconds(60);
};

/// An NF of the chain that is `on: gpu` or `on: auto`, on the device, with packets of one size.
struct NfMeasurement {
  std::string name;
  chain::NfKey key;
  std::uint32_t packet_bytes = 0;
  NfTimes times;
  /// As chain::MeasuredNf, from a line that may be level where little was measured; none: the device had no room for it
  /// alone.
  std::optional<double> host_alone_ns = std::nullopt;
  std::string why_not;  ///< why there are no times; else empty
};

/// Any NF of the chain on one core, with packets of one size.
struct CpuMeasurement {
  std::string name;
  chain::NfKey key;
  std::uint32_t packet_bytes = 0;
  double ns_per_packet = 0;   ///< that it decides; the median of kNfRepeats passes
  double spread_percent = 0;  ///< as chain::MeasuredOnCpu
  double after_gpu_ns = 0;    ///< the same; 0: no NF before it may be on the device
  std::string why_not;        ///< why there is no time; else empty
};

/// The ends of a chain on one core, with packets of one size.
struct EndsMeasurement {
  std::uint32_t packet_bytes = 0;
  EndTimes times;
};

struct NfMeasurements {
  std::vector<NfMeasurement> nfs;      ///< by packet size, then in chain order
  std::vector<CpuMeasurement> on_cpu;  ///< the same, of all NFs
  std::vector<EndsMeasurement> ends;   ///< by packet size
  std::string traffic;                 ///< what the packets are
  std::string why_no_parts;            ///< why the kernels were measured on all of the device alone; else empty
  std::vector<std::string> notes;      ///< what was left out
};

/// Sends generated packets through the chain's NFs in their order, again and again, and times each launch of those that
/// are `on: gpu` or `on: auto`, and what every NF takes for them on the CPU: with the configuration, the rule files and
/// the packets that the NFs before it left. `sync` says how the chain is planned; packets are taken to be of the size
/// at hand. Each number of packets is the median of kNfRepeats launches, one at a time. NFs with `isolation: process`
/// are measured in this process. What changes where NFs on the CPU and on the device follow one another is measured
/// with every second NF there, and then with the others; the ends of a chain by themselves. Where the device can be
/// divided, kernels are also timed alone on 8, 16, 32 and 64 of its compute units and on all, over the packets that are
/// there then.
///
/// `observer`: as measure(). Nothing else should run on the machine and the device meanwhile. Thread rule: as a Device.
/// Errors: as chain::make_instance(), plan_input(), make_generator(), kernel::DeviceNf::create() and Launch;
/// InvalidArgument: the chain has an NF that writes a file, or a plugin; DataLoss: a kernel read or wrote out of
/// bounds; DeadlineExceeded: the device hangs, and is given up.
Result<NfMeasurements> measure_nfs(device::Device& device, chain::ChainConfig const& config,
                                   nf::Registry const& registry, chain::SyncOptions const& sync,
                                   NfMeasureOptions const& options, MeasureObserver const& observer);

/// Puts what could be measured into the profile, in place of what it has of the same NFs and sizes.
void keep(NfMeasurements const& results, chain::CostProfile& profile);

}  // namespace catena::profile
