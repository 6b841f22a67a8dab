// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/random.hpp"
#include "gpu/device/testing/faulty_device.hpp"

#include <cstdint>
#include <string>

/// Devices that fail, for the chain fuzzer.
namespace catena::fuzz {

struct DeviceFault {
  enum class Kind {
    kOnce,   ///< one call fails; the device is sound
    kLost,   ///< one call fails, and every call after it
    kHangs,  ///< no event becomes ready any more
  };
  Kind kind = Kind::kOnce;
  device::testing::Call call = device::testing::Call::kReady;  ///< kOnce, kLost
  std::uint64_t nth = 1;                                       ///< of these calls, from when packets run
};

DeviceFault make_fault(Random& random);
/// Has the device fail so.
void arm(device::testing::FaultyDevice& device, DeviceFault const& fault);
/// In words.
std::string to_string(DeviceFault const& fault);

}  // namespace catena::fuzz
