// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_demand_meter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

constexpr share::GpuShape kShapeOfDemands{8, 1};
constexpr std::uint32_t kExpectedBytes = 300;
constexpr share::NfCost kMeasured{.kernel = {1000, 10}, .transfer = {1000, 1}};

/// One NF, measured for packets of up to kExpectedBytes.
std::vector<SharingNf> measured_nf() {
  std::vector<SharingNf> nfs(1);
  nfs[0].name = "nf";
  nfs[0].cost = [](std::uint32_t packet_bytes) {
    return packet_bytes <= kExpectedBytes ? std::optional(kMeasured) : std::nullopt;
  };
  return nfs;
}

TEST(NfDemandMeter, an_nf_has_needs_only_while_its_chain_runs) {
  const std::vector<SharingNf> nfs = measured_nf();
  const device::DeviceInfo device;
  NfDemandMeter meter(nfs, share::Mode::kScheduled, device, kExpectedBytes);
  Result<std::vector<share::NfDemand>> demands = meter.demands(kShapeOfDemands);
  ASSERT_TRUE(demands.ok()) << demands.status();
  ASSERT_EQ(demands->size(), 1U);
  EXPECT_EQ(demands->front().name, "nf");
  EXPECT_EQ(demands->front().packets_per_s, 0);
  EXPECT_EQ(demands->front().needed_pps, 0);

  std::uint64_t packets = 0;
  meter.start([&packets] {
    packets += 1000;
    return share::TrafficSample{{packets}, {0}, packets, packets * kExpectedBytes};
  });
  std::this_thread::sleep_for(2 * share::TrafficMeter::kMinPeriod);
  demands = meter.demands(kShapeOfDemands);
  ASSERT_TRUE(demands.ok()) << demands.status();
  EXPECT_GT(demands->front().packets_per_s, 0);

  meter.stop();
  const std::uint64_t at_stop = packets;
  demands = meter.demands(kShapeOfDemands);
  EXPECT_EQ(demands->front().packets_per_s, 0);
  EXPECT_EQ(packets, at_stop) << "its traffic is not read";
}

TEST(NfDemandMeter, larger_packets_than_measured_keep_the_last_cost) {
  const std::vector<SharingNf> nfs = measured_nf();
  const device::DeviceInfo device;
  NfDemandMeter meter(nfs, share::Mode::kScheduled, device, kExpectedBytes);
  ASSERT_TRUE(meter.demands(kShapeOfDemands).ok());
  std::uint64_t packets = 0;
  meter.start([&packets] {
    packets += 1000;
    return share::TrafficSample{{packets}, {0}, packets, packets * (kExpectedBytes + 1)};
  });
  std::this_thread::sleep_for(2 * share::TrafficMeter::kMinPeriod);
  const Result<std::vector<share::NfDemand>> demands = meter.demands(kShapeOfDemands);
  ASSERT_TRUE(demands.ok()) << demands.status();
  EXPECT_EQ(demands->front().cost.kernel.intercept, kMeasured.kernel.intercept);
  meter.stop();
}

TEST(NfDemandMeter, only_a_scheduler_needs_costs) {
  std::vector<SharingNf> nfs = measured_nf();
  device::DeviceInfo device;
  device.name = "Some GPU";
  NfDemandMeter scheduled(nfs, share::Mode::kScheduled, device, kExpectedBytes + 1);
  const Status status = scheduled.demands(kShapeOfDemands).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("the costs of NF 'nf' on Some GPU"));
  NfDemandMeter fair(nfs, share::Mode::kFair, device, kExpectedBytes + 1);
  EXPECT_TRUE(fair.demands(kShapeOfDemands).ok());
}

}  // namespace
}  // namespace catena::runtime
