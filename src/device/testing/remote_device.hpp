// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "device/device.hpp"
#include "device/remote/device.hpp"
#include "device/remote/server_pool.hpp"
#include "device/remote/supervisor.hpp"

namespace catena::device::testing {

/// The device server of a test: of this build, on `device`.
inline remote::Supervisor::Options server_options(std::string device = "opencl") {
  return {CATENA_DEVICE_SERVER, std::move(device), {}};
}

/// A new connection to the one server of this test program that has the first device of `backend`.
inline Result<std::unique_ptr<Device>> open_remote(std::string_view backend = "opencl") {
  static std::map<std::string, std::unique_ptr<remote::ServerPool>, std::less<>> pools;
  auto found = pools.find(backend);
  if (found == pools.end()) {
    const remote::Supervisor::Options options = server_options();
    found =
        pools
            .emplace(backend,
                     std::make_unique<remote::ServerPool>(remote::ServerPool::Options{options.program, options.limits}))
            .first;
  }
  return found->second->open(DevicePreference::of(backend), "test", nullptr);
}

}  // namespace catena::device::testing
