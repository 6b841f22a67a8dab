// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_trace.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {
namespace {

constexpr LaunchTimeline kTracedLaunch{
    .number = 5, .lane = 1, .packets = 64, .first_unit_ns = 10, .submit_begin_ns = 20, .submit_end_ns = 30};

std::vector<std::string> spans_of(trace::SpanLog const& log) {
  std::vector<std::string> spans;
  for (trace::Span const& span : log.spans()) {
    EXPECT_EQ(span.number, kTracedLaunch.number);
    EXPECT_EQ(span.packets, kTracedLaunch.packets);
    spans.push_back(std::string(span.what) + " on " + std::to_string(span.track) + " from " +
                    std::to_string(span.begin_ns) + " to " + std::to_string(span.end_ns));
  }
  return spans;
}

TEST(LaunchTrace, a_launch_has_spans_of_the_host_and_of_its_lane_of_the_device) {
  trace::SpanLog log;
  LaunchTrace trace(&log);
  ASSERT_TRUE(trace.is_on());
  ASSERT_TRUE(trace.wants(kTracedLaunch));
  trace.add(kTracedLaunch, 80, 90, std::optional(kernel::LaunchTimes{35, 40, 50, 60}));
  EXPECT_EQ(spans_of(log), (std::vector<std::string>{"fill on 0 from 10 to 20", "submit on 0 from 20 to 30",
                                                     "deliver on 0 from 80 to 90", "to device on 2 from 35 to 40",
                                                     "kernel on 2 from 40 to 50", "to host on 2 from 50 to 60"}));
  EXPECT_EQ(log.status(), absl::OkStatus());
}

TEST(LaunchTrace, a_launch_without_work_for_the_device_has_spans_of_the_host) {
  trace::SpanLog log;
  LaunchTrace trace(&log);
  trace.add(kTracedLaunch, 80, 90, std::optional<kernel::LaunchTimes>());
  EXPECT_EQ(log.spans().size(), 3U);
  EXPECT_EQ(log.status(), absl::OkStatus());
}

TEST(LaunchTrace, times_that_a_device_does_not_tell_are_an_error_of_the_log) {
  trace::SpanLog log;
  LaunchTrace trace(&log);
  trace.add(kTracedLaunch, 80, 90, absl::UnavailableError("no clock"));
  EXPECT_EQ(log.spans().size(), 3U);
  EXPECT_EQ(log.status(), absl::UnavailableError("no clock"));
}

TEST(LaunchTrace, without_a_log_no_launch_is_wanted) {
  const LaunchTrace trace(nullptr);
  EXPECT_FALSE(trace.is_on());
  EXPECT_FALSE(trace.wants(kTracedLaunch));
}

}  // namespace
}  // namespace catena::runtime
