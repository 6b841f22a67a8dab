// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/forwarding_device.hpp"

#include <catena/core/status.hpp>

/// Kernels without access checks, for the benchmark.
///
/// The product does not know about them: no macro that a kernel source could define, no option, key or variable exists.
/// The benchmark inserts a device of its own between a chain and the real device. It changes one line of
/// <catena/kernel/iso_ptr.hpp> in the source text before compilation. This folder is not installed.
namespace catena::bench {

/// Checking of accesses through IsoPtr.
enum class Checks { kOn, kOff };

/// `source` with the checks off and no other change. Internal if the line to change does not occur exactly once, as the
/// subject of the measurement would be unknown.
Result<device::ProgramSource> without_checks(device::ProgramSource source);

/// A real device, used by one chain or kernel at a time. With Checks::kOff kernels are compiled without_checks(), and
/// info().target differs, so that the disk cache keeps the two programs apart. Everything else is forwarded to the real
/// device: buffers, programs and streams are its own. Thread rule: as every Device.
class ChecksDevice final : public ForwardingDevice {
 public:
  /// `real` must outlive this.
  ChecksDevice(device::Device& real, Checks checks);

  Result<device::Binary> compile(device::ProgramSource const& source) override;

 private:
  Checks checks_;
};

}  // namespace catena::bench
