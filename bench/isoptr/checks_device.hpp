// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/forwarding_device.hpp"

#include <catena/core/status.hpp>

/// How the benchmark gets kernels whose accesses are not checked.
///
/// Nothing of the product knows that there are such: no macro, which the source of a kernel might define, no option, no
/// key and no variable. The benchmark lays a device of its own between a chain and the real one, which changes one line
/// of <catena/kernel/iso_ptr.hpp> in the text that is about to be compiled. This folder is not installed.
namespace catena::bench {

/// Whether accesses through IsoPtr are checked.
enum class Checks { kOn, kOff };

/// `source` with the checks off, as text that was not changed otherwise. Internal where the one line to change is not
/// there, or there more than once: what would be measured is not known then.
Result<device::ProgramSource> without_checks(device::ProgramSource source);

/// A real device, for one chain or kernel after the other. With
/// Checks::kOff kernels are compiled without_checks(), and info().target is another, by which the cache on disk keeps
/// both programs apart. Everything else goes to the real device: buffers, programs and streams are its own. Thread
/// rule: as every Device.
class ChecksDevice final : public ForwardingDevice {
 public:
  /// `real` must outlive this.
  ChecksDevice(device::Device& real, Checks checks);

  Result<device::Binary> compile(device::ProgramSource const& source) override;

 private:
  Checks checks_;
};

}  // namespace catena::bench
