// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu_sharing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kMeasuredBytes = 300;

/// Of a chain of one NF, which is measured for small packets.
Result<std::unique_ptr<GpuSharing>> share(device::Device& device, chain::SharingOptions const& options,
                                          std::string name) {
  std::vector<GpuSharing::Nf> nfs(1);
  nfs.front().name = std::move(name);
  nfs.front().cost = [](std::uint32_t packet_bytes) {
    const share::NfCost cost{.kernel = {1000, 10}, .transfer = {1000, 1}};
    return packet_bytes <= kMeasuredBytes ? std::optional(cost) : std::nullopt;
  };
  return GpuSharing::create(device, options, std::move(nfs), kMeasuredBytes);
}

TEST(GpuSharing, an_nf_whose_cost_for_larger_packets_is_unknown_keeps_nobody_from_new_parts) {
  Result<std::unique_ptr<device::Device>> opened = device::open(device::DevicePreference::of("opencl"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  device::Device& device = **opened;
  chain::SharingOptions options{share::Mode::kScheduled, share::Parts::kBlocks};
  options.divisions = std::make_shared<share::Divisions>(share::Mode::kScheduled);
  const auto first = share(device, options, "first");
  ASSERT_TRUE(first.ok()) << first.status();
  std::uint64_t packets = 0;
  (*first)->start(
      [&packets] {
        packets += 1000;
        return GpuSharing::Traffic{{packets}, {0}, packets, packets * (kMeasuredBytes + 1)};
      },
      false);
  std::this_thread::sleep_for(2 * share::TrafficMeter::kMinPeriod);  // then the next look finds larger packets
  {
    const auto second = share(device, options, "second");
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_GT((*second)->allocations().front().units, 0U);
  }
  (*first)->stop();
}

}  // namespace
}  // namespace catena::runtime
