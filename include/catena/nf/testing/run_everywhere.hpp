// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

/// Expectations for every placement of an NF and every cut into units.
namespace catena::nf::testing {

/// Processes the frames on the CPU and on every device, each with an NF of `make()`, which returns a Result. Expects
/// equal results, and on a device that the kernel processed every processed packet. Returns the result.
template <typename Make>
RunResult run_everywhere(Descriptor const& descriptor, Make make, std::vector<Frame> const& frames,
                         RunOptions const& options = {}) {
  Result<std::unique_ptr<Nf>> nf = make();
  EXPECT_TRUE(nf.ok()) << nf.status();
  if (!nf.ok()) {
    return {};
  }
  Result<RunResult> cpu = run(descriptor, *std::move(nf), frames, nullptr, options);
  EXPECT_TRUE(cpu.ok()) << cpu.status();
  if (!cpu.ok()) {
    return {};
  }
  for (device::Device* device : devices()) {
    SCOPED_TRACE(name_of(device));
    const Result<RunResult> on_device = run(descriptor, *make(), frames, device, options);
    EXPECT_TRUE(on_device.ok()) << on_device.status();
    if (!on_device.ok()) {
      continue;
    }
    EXPECT_TRUE(on_device->packets == cpu->packets);
    EXPECT_EQ(on_device->records, cpu->records);
    EXPECT_EQ(on_device->drops, cpu->drops);
    EXPECT_EQ(on_device->counters.kernel_faults, 0U);
    EXPECT_EQ(on_device->counters.device_packets, cpu->counters.processed);
  }
  return *std::move(cpu);
}

/// Expects the packets and records of `expected` on the CPU for units of each of these sizes.
template <typename Make>
void expect_same_in_units_of(std::initializer_list<std::uint32_t> sizes, RunResult const& expected,
                             Descriptor const& descriptor, Make make, std::vector<Frame> const& frames) {
  for (const std::uint32_t size : sizes) {
    RunOptions options;
    options.unit_size = size;
    const Result<RunResult> result = run(descriptor, *make(), frames, nullptr, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->packets == expected.packets) << size;
    EXPECT_EQ(result->records, expected.records) << size;
  }
}

}  // namespace catena::nf::testing
