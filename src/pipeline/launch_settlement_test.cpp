// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_settlement.hpp"

#include "base/core/keep.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "pipeline/testing/marker_bench.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace catena::runtime {
namespace {

using device::testing::FaultyDevice;
using testing::MarkerBench;

/// A device that lives until the process ends: it may be written to after the test.
FaultyDevice& kept_device() {
  auto owned = std::make_unique<FaultyDevice>(*nf::testing::devices().front());
  FaultyDevice& device = *owned;
  keep_until_exit(std::move(owned));
  return device;
}

class LaunchSettlementTest : public ::testing::Test {
 protected:
  /// A launch of two groups of two units.
  DeviceLaunch& filled() {
    DeviceLaunch& launch = *binding_->take_idle();
    launch.begin(0, DeviceLaunch::Clock::now());
    for (int group = 0; group < 2; ++group) {
      launch.add(bench_.unit_of(20));
      launch.add(bench_.unit_of(30));
      launch.close_group();
    }
    return launch;
  }
  void expect_decided_by_the_cpu(DeviceLaunch const& launch) {
    EXPECT_EQ(bench_.frames_of(launch.units()), MarkerBench::frames_on_cpu({20, 30, 20, 30}));
    for (memory::Unit const* const unit : launch.units()) {
      EXPECT_TRUE(unit->host_fallback);
      EXPECT_FALSE(unit->quarantined);
    }
  }

  FaultyDevice& device_ = kept_device();
  DeviceUse use_;
  MarkerBench bench_{device_};
  std::unique_ptr<DeviceBinding> binding_ =
      DeviceBinding::create(bench_.instance(), bench_.device_nf(), bench_.pool(), bench_.options(use_)).value();
};

TEST_F(LaunchSettlementTest, a_launch_that_was_not_submitted_is_decided_by_the_cpu_at_once) {
  LaunchSettlement settlement(std::chrono::seconds(20));
  binding_->lose(absl::UnavailableError("lost"));
  for (int i = 0; i < 2; ++i) {
    DeviceLaunch& launch = filled();
    EXPECT_TRUE(settlement.poll(launch, *binding_));
    if (i == 0) {
      expect_decided_by_the_cpu(launch);
    }
    EXPECT_EQ(launch.batch().units(), 0U);
    launch.clear();
    binding_->put_back(launch);
  }
}

TEST_F(LaunchSettlementTest, a_launch_that_failed_waits_until_nothing_of_it_runs) {
  LaunchSettlement settlement(std::chrono::seconds(20));
  DeviceLaunch& launch = filled();
  device_.hold_events(true);
  ASSERT_EQ(launch.submit(DeviceLaunch::Clock::now()), absl::OkStatus());
  launch.fail();
  binding_->lose(absl::UnavailableError("lost"));
  EXPECT_FALSE(settlement.poll(launch, *binding_));
  EXPECT_EQ(launch.state(), DeviceLaunch::State::kFailed);
  device_.hold_events(false);
  EXPECT_TRUE(MarkerBench::wait_for([&] { return settlement.poll(launch, *binding_); }));
  EXPECT_EQ(launch.state(), DeviceLaunch::State::kAtRest);
  EXPECT_TRUE(use_.answers());
  expect_decided_by_the_cpu(launch);
}

TEST_F(LaunchSettlementTest, a_device_that_exceeds_the_limit_is_given_up) {
  LaunchSettlement settlement(std::chrono::milliseconds(20));
  DeviceLaunch& launch = filled();
  device_.hold_events(true);
  ASSERT_EQ(launch.submit(DeviceLaunch::Clock::now()), absl::OkStatus());
  launch.fail();
  binding_->lose(absl::UnavailableError("lost"));
  EXPECT_FALSE(settlement.poll(launch, *binding_));
  EXPECT_TRUE(MarkerBench::wait_for([&] { return settlement.poll(launch, *binding_); }));
  EXPECT_FALSE(use_.answers());
  EXPECT_TRUE(binding_->gave_up());
  EXPECT_EQ(use_.reason(), absl::UnavailableError("NF mark: lost")) << "the first reason";
  expect_decided_by_the_cpu(launch);  // packets are staged: the device cannot write to them
}

}  // namespace
}  // namespace catena::runtime
