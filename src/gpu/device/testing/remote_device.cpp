// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/testing/remote_device.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace catena::device::testing {

remote::Supervisor::Options server_options(std::string device) { return {CATENA_DEVICE_SERVER, std::move(device), {}}; }

namespace {

/// The one of this test program for the first device of `backend`.
remote::ServerPool& servers_of(std::string_view backend) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<remote::ServerPool>, std::less<>> pools;
  const std::scoped_lock lock(mutex);
  auto found = pools.find(backend);
  if (found == pools.end()) {
    const remote::Supervisor::Options options = server_options();
    found =
        pools
            .emplace(backend,
                     std::make_unique<remote::ServerPool>(remote::ServerPool::Options{options.program, options.limits}))
            .first;
  }
  return *found->second;
}

}  // namespace

Result<std::unique_ptr<Device>> open_remote(std::string_view backend) {
  return servers_of(backend).open(DevicePreference::of(backend), {"test"}, nullptr);
}

Result<FileDescriptor> connect_remote(std::string_view backend, std::string_view client, std::string* why) {
  return servers_of(backend).connect(DevicePreference::of(backend), {std::string(client)}, why);
}

}  // namespace catena::device::testing
