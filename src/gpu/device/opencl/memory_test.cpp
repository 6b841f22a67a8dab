// SPDX-License-Identifier: Apache-2.0
// What the suite of all backends cannot reach on a machine whose only OpenCL device is its CPU.
#include <catena/core/text.hpp>

#include "gpu/device/opencl/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace catena::device::opencl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OpenClMemory, device_that_may_copy_host_memory_says_that_gather_is_not_available) {
  Result<std::vector<Found>> found = find_devices();
  if (!found.ok()) {
    GTEST_SKIP() << found.status().message();
  }
  Found& first = found->front();
  first.works_in_host_memory = false;
  const std::string name = first.info.name;
  const std::unique_ptr<Device> device = OpenClDevice::create(std::move(first)).value();
  alignas(4096) static std::array<std::byte, 4096> page{};
  EXPECT_THAT(device->map_host(std::span<std::byte>(page)).status().ToString(),
              AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr(name), HasSubstr("gather is not available")));
  EXPECT_EQ(device->failed(), absl::OkStatus());
}

}  // namespace
}  // namespace catena::device::opencl
