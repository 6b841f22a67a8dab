// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gpu/device/device.hpp"

namespace catena::device::testing {

/// The first device of a backend, opened once for all tests of the program; its error if no such device exists.
/// Thread rule: one thread.
inline Result<Device*> shared_device(std::string_view backend) {
  static std::map<std::string, Result<std::unique_ptr<Device>>, std::less<>> opened;
  auto found = opened.find(backend);
  if (found == opened.end()) {
    found = opened.emplace(std::string(backend), open(DevicePreference::of(backend))).first;
  }
  CATENA_RETURN_IF_ERROR(found->second.status());
  return found->second->get();
}

}  // namespace catena::device::testing
