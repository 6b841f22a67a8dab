// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_launch.hpp"

#include "gpu/device/testing/faulty_device.hpp"
#include "pipeline/testing/marker_bench.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace catena::runtime {
namespace {

using testing::MarkerBench;
using LaunchState = DeviceLaunch::State;

TEST(DeviceLaunch, its_units_have_the_packets_of_the_cpu_when_it_is_done) {
  MarkerBench bench;
  DeviceLaunch& launch = bench.launch();
  const auto now = DeviceLaunch::Clock::now();
  launch.begin(7, now);
  EXPECT_EQ(launch.since(), now);
  EXPECT_EQ(launch.state(), LaunchState::kAtRest);
  launch.add(bench.unit_of(50));
  launch.add(bench.unit_of(30));
  launch.close_group();
  EXPECT_EQ(launch.timeline().number, 7U);
  EXPECT_EQ(launch.timeline().packets, 80U);
  ASSERT_EQ(launch.submit(DeviceLaunch::Clock::now()), absl::OkStatus());
  EXPECT_EQ(launch.state(), LaunchState::kRunning);
  ASSERT_TRUE(MarkerBench::wait_for([&launch] {
    EXPECT_EQ(launch.advance(), absl::OkStatus());
    return launch.poll().value();
  }));
  EXPECT_EQ(launch.state(), LaunchState::kAtRest);
  EXPECT_EQ(bench.frames_of(launch.units()), MarkerBench::frames_on_cpu({50, 30}));
  launch.clear();
  EXPECT_TRUE(launch.units().empty());
  EXPECT_TRUE(launch.group_ends().empty());
  launch.begin(8, now);
  EXPECT_EQ(launch.timeline().packets, 0U);
}

TEST(DeviceLaunch, small_units_are_groups_together_if_there_is_room_for_another) {
  MarkerBench bench;
  DeviceLaunch& launch = bench.launch();
  launch.begin(0, {});
  launch.add(bench.unit_of(20));
  launch.add(bench.unit_of(20));
  launch.close_group();
  launch.close_group();
  EXPECT_EQ(launch.group_ends(), std::vector<std::size_t>{2}) << "no group is empty";
  launch.add(bench.unit_of(64));
  EXPECT_EQ(launch.group_ends().size(), 1U) << "another full unit would fit";
  launch.add(bench.unit_of(1));
  EXPECT_EQ(launch.group_ends(), (std::vector<std::size_t>{2, 4}));

  DeviceLaunch& single = bench.launch(128, 0);
  single.begin(0, {});
  single.add(bench.unit_of(20));
  single.add(bench.unit_of(20));
  EXPECT_EQ(single.group_ends(), (std::vector<std::size_t>{1, 2}));
}

TEST(DeviceLaunch, a_unit_has_room_or_waits) {
  MarkerBench bench;
  DeviceLaunch& launch = bench.launch(64);
  launch.begin(0, {});
  launch.add(bench.unit_of(40));
  EXPECT_FALSE(launch.has_room_for(bench.unit_of(25))) << "an open group counts";
  memory::Unit& rest = bench.unit_of(24);
  ASSERT_TRUE(launch.has_room_for(rest));
  launch.close_group();
  EXPECT_FALSE(launch.is_full());
  launch.add(rest);
  launch.close_group();
  EXPECT_TRUE(launch.is_full());
}

TEST(DeviceLaunch, after_an_error_it_has_failed_since_then) {
  for (const auto call : {device::testing::Call::kLaunch, device::testing::Call::kReady}) {
    device::testing::FaultyDevice faulty(*nf::testing::devices().front());
    MarkerBench bench(faulty);
    DeviceLaunch& launch = bench.launch();
    const auto begin = DeviceLaunch::Clock::now();
    launch.begin(0, begin);
    launch.add(bench.unit_of());
    launch.close_group();
    faulty.lose(call, 1, absl::UnavailableError("fell off the bus"));
    Status status = launch.submit(begin);
    if (status.ok()) {
      static_cast<void>(MarkerBench::wait_for([&launch, &status] {
        status = launch.advance();
        if (status.ok()) {
          status = launch.poll().status();
        }
        return !status.ok();
      }));
      EXPECT_GT(launch.since(), begin);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(launch.state(), LaunchState::kFailed);
    EXPECT_EQ(launch.advance(), absl::OkStatus()) << "there is nothing to advance";
    EXPECT_EQ(launch.units().size(), 1U);
    launch.come_to_rest();
    EXPECT_EQ(launch.state(), LaunchState::kAtRest);
  }
}

}  // namespace
}  // namespace catena::runtime
