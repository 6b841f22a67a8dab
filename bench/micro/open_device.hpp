// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "io/eal/eal.hpp"

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <cstdlib>
#include <memory>
#include <string>

namespace catena {

/// Value of CATENA_BENCH_DEVICE: cuda or opencl; null if unset.
inline const char* wanted_device() { return std::getenv("CATENA_BENCH_DEVICE"); }

/// Starts the EAL and opens the wanted device, else the device selected by `auto`. Unavailable, with the reason, if no
/// device exists.
inline Result<std::unique_ptr<device::Device>> open_device() {
  CATENA_RETURN_IF_ERROR(eal::start());
  const char* wanted = wanted_device();
  CATENA_ASSIGN_OR_RETURN(const device::DevicePreference choice,
                          device::parse_preference(wanted != nullptr ? wanted : "auto"));
  std::string why;
  CATENA_ASSIGN_OR_RETURN(auto device, device::open(choice, &why));
  if (!device) {
    return absl::UnavailableError(concat("there is no device to measure on. ", why));
  }
  return device;
}

}  // namespace catena
