// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "pipeline/sharing_nf.hpp"
#include "plan/sharing/scheduler.hpp"
#include "plan/sharing/traffic.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// Demands of a chain's NFs for a shared GPU, by their costs and the traffic of the running chain. Any thread.
class NfDemandMeter {
 public:
  /// `nfs` and `device` outlive this. `packet_bytes`: the expected average.
  NfDemandMeter(std::span<const SharingNf> nfs, share::Mode mode, device::DeviceInfo const& device,
                std::uint32_t packet_bytes);
  NfDemandMeter(NfDemandMeter const&) = delete;
  NfDemandMeter& operator=(NfDemandMeter const&) = delete;

  /// The chain runs from here on, to stop(). `traffic`: the current traffic; any thread.
  void start(std::function<share::TrafficSample()> traffic);
  /// NFs of a chain without traffic have no needs. `traffic` is not called afterwards.
  void stop();
  /// The demands now, for parts of a GPU with `shape`. An NF whose cost for its packets has become unknown, or too high
  /// for any part, has its last usable cost. FailedPrecondition in mode `scheduled` for an unmeasured NF.
  Result<std::vector<share::NfDemand>> demands(share::GpuShape const& shape);

 private:
  std::optional<share::NfCost> cost_of(std::size_t nf, share::GpuShape const& shape);
  bool does_any_part_for(share::NfCost const& cost, double limit_ns, share::GpuShape const& shape) const;

  std::span<const SharingNf> nfs_;
  share::Mode mode_;
  device::DeviceInfo const* device_;
  std::mutex mutex_;                                       ///< guards the next three
  std::vector<std::optional<share::NfCost>> known_costs_;  ///< of each NF, the last known ones
  std::function<share::TrafficSample()> traffic_;          ///< null while the chain does not run
  share::TrafficMeter meter_;
};

}  // namespace catena::runtime
