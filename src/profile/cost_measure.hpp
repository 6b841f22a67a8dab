// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "plan/cost_model.hpp"

#include <cstdint>
#include <functional>
#include <string>

/// Measures the costs of moving packets on this machine.
namespace catena::profile {

/// Progress of measure(): `done` of `total` steps, and the next step.
struct MeasureProgress {
  std::string what;  ///< "gather h2d, 8192 frames of 64 bytes"
  std::uint32_t done = 0;
  std::uint32_t total = 0;
};
using MeasureObserver = std::function<void(MeasureProgress const&)>;

/// The coefficients of `device` on this machine, some seconds' work. The operations of launches are timed: bulk copies
/// of pinned memory, row copies between slots and their twins, and the transfer kernel of a shared step, over 64 to
/// 8,192 packets of 64 to 1,514 bytes and over one header field of 4 bytes, with at least four transfers in flight.
/// Each time is the median of seven samples; bytes are timed with both directions busy, everything else with the other
/// one idle; plan/cost_fit.hpp describes the fit of the coefficients. The batching work of one core is timed over 256
/// MiB of packets, more than the caches of most machines. If the device cannot map host memory, gather is not
/// `available`, and its coefficients are 0.
///
/// `observer` is called by the calling thread before every step and after the last one; it may be empty. Nothing else
/// should run on the machine and the device meanwhile. Thread rule: as a Device.
/// Errors: as kernel::build(), Device and Stream; DeadlineExceeded if the device hangs; ResourceExhausted without host
/// memory; Internal if bytes arrive changed.
Result<plan::CostModel> measure(device::Device& device, MeasureObserver const& observer);

}  // namespace catena::profile
