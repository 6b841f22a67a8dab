// SPDX-License-Identifier: Apache-2.0
#include "device/testing/remote_device.hpp"

#include <map>
#include <utility>

namespace catena::device::testing {

remote::Supervisor::Options server_options(std::string device) { return {CATENA_DEVICE_SERVER, std::move(device), {}}; }

Result<std::unique_ptr<Device>> open_remote(std::string_view backend) {
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
