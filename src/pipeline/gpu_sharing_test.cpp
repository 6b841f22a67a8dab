// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gpu_sharing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kMeasuredBytes = 300;

/// Of a chain of one NF, which is measured for small packets. `larger`: what it costs for others.
Result<std::unique_ptr<GpuSharing>> share(device::Device& device, share::Mode mode,
                                          std::shared_ptr<share::PartitionPlans> const& plans, std::string name,
                                          std::optional<share::NfCost> larger = std::nullopt) {
  std::vector<GpuSharing::Nf> nfs(1);
  nfs.front().name = std::move(name);
  nfs.front().backlog_packets = 1;
  nfs.front().cost = [larger](std::uint32_t packet_bytes) {
    const share::NfCost cost{.kernel = {1000, 10}, .transfer = {1000, 1}};
    return packet_bytes <= kMeasuredBytes ? std::optional(cost) : larger;
  };
  return GpuSharing::create(device, {mode, share::Parts::kBlocks}, {plans}, std::move(nfs), kMeasuredBytes);
}

/// Packets that come are larger than `sharing` expected.
void start_with_larger_packets(GpuSharing& sharing) {
  sharing.start(
      [packets = std::uint64_t{0}]() mutable {
        packets += 1000;
        return GpuSharing::Traffic{{packets}, {0}, packets, packets * (kMeasuredBytes + 1)};
      },
      false);
  std::this_thread::sleep_for(2 * share::TrafficMeter::kMinPeriod);  // then the next look finds them
}

/// Another chain gets its parts though one has packets that are larger than it expected. `larger`: what they cost.
void expect_parts_beside_larger_packets(device::Device& device, share::Mode mode,
                                        std::optional<share::NfCost> const& larger) {
  const auto plans = std::make_shared<share::PartitionPlans>(mode);
  const auto first = share(device, mode, plans, "first", larger);
  ASSERT_TRUE(first.ok()) << first.status();
  start_with_larger_packets(**first);
  {
    const auto second = share(device, mode, plans, "second");
    ASSERT_TRUE(second.ok()) << share::to_string(mode) << ": " << second.status();
    EXPECT_GT((*second)->allocations().front().units, 0U);
  }
  (*first)->stop();
}

TEST(GpuSharing, an_nf_whose_cost_for_larger_packets_is_unknown_keeps_nobody_from_new_parts) {
  Result<std::unique_ptr<device::Device>> opened = device::open(device::DevicePreference::of("opencl"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  expect_parts_beside_larger_packets(**opened, share::Mode::kScheduled, std::nullopt);
}

TEST(GpuSharing, an_nf_that_cannot_be_as_fast_as_it_must_for_larger_packets_keeps_nobody_from_new_parts) {
  Result<std::unique_ptr<device::Device>> opened = device::open(device::DevicePreference::of("opencl"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  const share::NfCost later_than_its_limit{.kernel = {2e6, 10}, .transfer = {1000, 1}};
  const share::NfCost too_dear_for_any_part{.kernel = {1000, 1e300}, .transfer = {1000, 1e300}};
  for (const share::Mode mode : {share::Mode::kScheduled, share::Mode::kFair, share::Mode::kUncoordinated}) {
    for (share::NfCost const& larger : {later_than_its_limit, too_dear_for_any_part}) {
      expect_parts_beside_larger_packets(**opened, mode, larger);
    }
  }
}

TEST(GpuSharing, a_chain_that_does_not_run_yet_takes_nothing_from_one_that_needs_all) {
  Result<std::unique_ptr<device::Device>> opened = device::open(device::DevicePreference::of("opencl"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  device::Device& device = **opened;
  const auto plans = std::make_shared<share::PartitionPlans>(share::Mode::kScheduled);
  const auto busy = share(device, share::Mode::kScheduled, plans, "busy");
  ASSERT_TRUE(busy.ok()) << busy.status();
  const std::uint32_t all = (*busy)->allocations().front().units;
  std::uint64_t packets = 0;
  const auto more_than_it_can = [&packets] {
    packets += 1000;
    return GpuSharing::Traffic{{packets}, {1}, packets, packets * kMeasuredBytes};
  };
  (*busy)->start(more_than_it_can, false);
  const auto waits = share(device, share::Mode::kScheduled, plans, "waits for a reader");
  ASSERT_TRUE(waits.ok()) << waits.status();
  Pause pause;
  (*busy)->look(pause);
  EXPECT_EQ((*waits)->allocations().front().units, 1U);
  EXPECT_GT((*busy)->allocations().front().units, all / 2);
  // as soon as it runs, it has its share
  (*waits)->start(more_than_it_can, false);
  std::this_thread::sleep_for(share::PartitionPlan::kPeriod);
  (*waits)->look(pause);
  EXPECT_GT((*waits)->allocations().front().units, 1U);
  (*waits)->stop();
  (*busy)->stop();
}

}  // namespace
}  // namespace catena::runtime
