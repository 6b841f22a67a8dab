// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launches_in_flight.hpp"

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
using InFlightOutcome = LaunchesInFlight::Outcome;

const LaunchPacing kTestPacing(2, std::chrono::seconds(100));

DeviceLaunch& filled(MarkerBench& bench, std::uint32_t number = 0) {
  DeviceLaunch& launch = bench.launch();
  launch.begin(number, DeviceLaunch::Clock::now());
  launch.add(bench.unit_of());
  launch.close_group();
  return launch;
}

/// Polls until it is not kWaiting, or 20 s are over.
Result<InFlightOutcome> wait_for_oldest(LaunchesInFlight& in_flight) {
  Result<InFlightOutcome> outcome = InFlightOutcome::kWaiting;
  static_cast<void>(MarkerBench::wait_for([&in_flight, &outcome] {
    EXPECT_EQ(in_flight.advance(), absl::OkStatus());
    outcome = in_flight.poll();
    return !outcome.ok() || *outcome != InFlightOutcome::kWaiting;
  }));
  return outcome;
}

TEST(LaunchesInFlight, launches_end_in_order) {
  MarkerBench bench;
  LaunchesInFlight in_flight(std::chrono::seconds(20), kTestPacing, LaunchTrace(nullptr));
  EXPECT_TRUE(in_flight.empty());
  EXPECT_EQ(in_flight.oldest(), nullptr);
  DeviceLaunch& first = filled(bench);
  DeviceLaunch& second = filled(bench);
  ASSERT_EQ(in_flight.submit(first), absl::OkStatus());
  ASSERT_EQ(in_flight.submit(second), absl::OkStatus());
  for (DeviceLaunch* const launch : {&first, &second}) {
    ASSERT_EQ(in_flight.oldest(), launch);
    EXPECT_EQ(launch->state(), DeviceLaunch::State::kRunning);
    const Result<InFlightOutcome> outcome = wait_for_oldest(in_flight);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(*outcome, InFlightOutcome::kDone);
    EXPECT_EQ(&in_flight.pop(), launch);
  }
  EXPECT_TRUE(in_flight.empty());
}

TEST(LaunchesInFlight, a_launch_that_was_not_submitted_keeps_its_place) {
  MarkerBench bench;
  LaunchesInFlight in_flight(std::chrono::seconds(20), kTestPacing, LaunchTrace(nullptr));
  ASSERT_EQ(in_flight.submit(filled(bench)), absl::OkStatus());
  DeviceLaunch& unsubmitted = filled(bench);
  in_flight.add(unsubmitted);
  EXPECT_EQ(*wait_for_oldest(in_flight), InFlightOutcome::kDone);
  in_flight.pop();
  EXPECT_EQ(in_flight.oldest(), &unsubmitted);
  EXPECT_EQ(unsubmitted.state(), DeviceLaunch::State::kAtRest);
}

TEST(LaunchesInFlight, a_launch_over_the_limit_is_late_and_has_failed) {
  auto owned = std::make_unique<FaultyDevice>(*nf::testing::devices().front());
  FaultyDevice& device = *owned;
  keep_until_exit(std::move(owned));
  MarkerBench bench(device);
  LaunchesInFlight in_flight(std::chrono::milliseconds(20), kTestPacing, LaunchTrace(nullptr));
  DeviceLaunch& launch = filled(bench);
  device.hold_events(true);
  const auto begin = LaunchesInFlight::Clock::now();
  ASSERT_EQ(in_flight.submit(launch), absl::OkStatus());
  const Result<InFlightOutcome> outcome = wait_for_oldest(in_flight);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(*outcome, InFlightOutcome::kLate);
  EXPECT_GT(LaunchesInFlight::Clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(launch.state(), DeviceLaunch::State::kFailed);
  EXPECT_EQ(in_flight.oldest(), &launch) << "its units are to be settled";
  device.hold_events(false);
  EXPECT_TRUE(MarkerBench::wait_for([&launch] { return launch.batch().drained().value(); }));
}

TEST(LaunchesInFlight, a_launch_that_cannot_start_is_in_flight_and_has_failed) {
  FaultyDevice device(*nf::testing::devices().front());
  MarkerBench bench(device);
  LaunchesInFlight in_flight(std::chrono::seconds(20), kTestPacing, LaunchTrace(nullptr));
  DeviceLaunch& launch = filled(bench);
  device.lose(device::testing::Call::kLaunch, 1, absl::UnavailableError("fell off the bus"));
  Status status = in_flight.submit(launch);
  static_cast<void>(MarkerBench::wait_for([&in_flight, &status] {
    if (status.ok()) {
      status = in_flight.advance();
    }
    return !status.ok();
  }));
  EXPECT_EQ(status, absl::UnavailableError("fell off the bus"));
  EXPECT_EQ(in_flight.oldest(), &launch);
  EXPECT_EQ(launch.state(), DeviceLaunch::State::kFailed);
}

TEST(LaunchesInFlight, the_time_of_launches_says_when_the_next_is_due) {
  MarkerBench bench;
  LaunchPacing pacing(2, std::chrono::seconds(100));
  pacing.completed(std::chrono::hours(8));
  LaunchesInFlight in_flight(std::chrono::seconds(20), pacing, LaunchTrace(nullptr));
  DeviceLaunch& waiting = filled(bench);
  ASSERT_EQ(in_flight.submit(filled(bench)), absl::OkStatus());
  EXPECT_FALSE(in_flight.is_due(waiting));
  in_flight.forget_times();
  EXPECT_TRUE(MarkerBench::wait_for([&] { return in_flight.is_due(waiting); }));
  EXPECT_EQ(*wait_for_oldest(in_flight), InFlightOutcome::kDone);
}

TEST(LaunchesInFlight, a_trace_has_the_launches_that_were_done) {
  MarkerBench bench;
  trace::SpanLog log;
  LaunchesInFlight in_flight(std::chrono::seconds(20), kTestPacing, LaunchTrace(&log));
  DeviceLaunch& launch = filled(bench, 3);
  ASSERT_EQ(launch.batch().start_trace(), absl::OkStatus());
  ASSERT_EQ(in_flight.submit(launch), absl::OkStatus());
  in_flight.add(filled(bench, 4));
  EXPECT_EQ(*wait_for_oldest(in_flight), InFlightOutcome::kDone);
  EXPECT_TRUE(log.spans().empty()) << "it was not delivered";
  in_flight.pop();
  in_flight.pop();
  EXPECT_EQ(log.spans().size(), 6U);
  for (trace::Span const& span : log.spans()) {
    EXPECT_EQ(span.number, 3U);
    EXPECT_EQ(span.packets, MarkerBench::kUnitPackets);
    EXPECT_LE(span.begin_ns, span.end_ns) << span.what;
  }
}

}  // namespace
}  // namespace catena::runtime
