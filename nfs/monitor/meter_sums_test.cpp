// SPDX-License-Identifier: Apache-2.0
// A meter that gets the sums of flows is held to one that gets the same packets one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr std::uint64_t kIdle = 15 * kTestSecond;
constexpr std::uint64_t kActive = 60 * kTestSecond;

Observation seen(std::uint32_t src, std::uint64_t arrival_ns, std::uint16_t length = 100, std::uint16_t flags = 0,
                 std::uint8_t tos = 0) {
  return {testing::key(src, 9, 1, 2, 6), arrival_ns, length, flags, tos};
}

/// Two meters that see the same.
class Meters {
 public:
  Meters(std::uint32_t capacity, Timeouts timeouts)
      : one_by_one_(std::move(*FlowTable::create(capacity)), timeouts, expected_),
        summed_(std::move(*FlowTable::create(capacity)), timeouts, actual_) {}

  /// Returns the positions of the packets that the meter of sums read one by one.
  std::vector<std::uint32_t> observe(std::vector<Observation> const& batch, std::uint32_t first_row = 0) {
    std::vector<std::uint32_t> read;
    one_by_one_.observe(batch);
    summed_.observe(testing::summed(batch, first_row), [&](std::uint32_t i) {
      read.push_back(i);
      return batch[i];
    });
    expect_same();
    return read;
  }
  void tick(std::uint64_t now_ns) {
    one_by_one_.tick(now_ns);
    summed_.tick(now_ns);
    expect_same();
  }
  void finish() {
    one_by_one_.finish();
    summed_.finish();
    expect_same();
  }
  std::vector<FlowRecord> const& records() const { return expected_.records; }

 private:
  void expect_same() {
    EXPECT_THAT(actual_.records, ElementsAreArray(expected_.records));
    EXPECT_EQ(actual_.clocks, expected_.clocks);
    EXPECT_EQ(actual_.seconds, expected_.seconds);
    EXPECT_EQ(summed_.clock_ns(), one_by_one_.clock_ns());
    const MeterCounts actual = summed_.counts();
    const MeterCounts expected = one_by_one_.counts();
    EXPECT_EQ(actual.flows, expected.flows);
    EXPECT_EQ(actual.peak, expected.peak);
    EXPECT_EQ(actual.exported, expected.exported);
    EXPECT_EQ(actual.evicted, expected.evicted);
  }
  RecordingSink expected_;
  RecordingSink actual_;
  Meter one_by_one_;
  Meter summed_;
};

TEST(MeterOfSums, reads_no_packet_where_nothing_ends) {
  Meters meters(100, {kIdle, kActive});
  EXPECT_THAT(meters.observe({seen(1, 10, 60, 2, 0x28), seen(2, 20), seen(1, 15, 1500, 0x10, 7), seen(1, 30, 40, 1)}),
              IsEmpty());
  EXPECT_THAT(meters.observe({seen(3, 40), seen(1, 50), seen(2, 60), seen(1, 70)}), IsEmpty());
  meters.finish();
  ASSERT_EQ(meters.records().size(), 3U);
  EXPECT_EQ(meters.records()[2].packets, 5U);
}

TEST(MeterOfSums, reads_no_packet_where_other_flows_end_by_time_and_eviction) {
  Meters meters(4, {kIdle, kActive});
  meters.observe({seen(1, 0), seen(2, 0), seen(3, kIdle / 2), seen(4, kIdle / 2)});
  // 1 and 2 end by time, 3 is evicted
  EXPECT_THAT(meters.observe({seen(5, kIdle - 1), seen(6, kIdle), seen(5, kIdle + 1), seen(7, kIdle + 2)}), IsEmpty());
  ASSERT_EQ(meters.records().size(), 3U);
  EXPECT_EQ(meters.records()[0].end_reason, EndReason::kLackOfResources);
  meters.finish();
}

TEST(MeterOfSums, reads_all_packets_where_a_flow_may_be_idle_within_the_batch) {
  Meters meters(10, {kIdle, 0});
  meters.observe({seen(1, 1)});
  EXPECT_THAT(meters.observe({seen(1, 2), seen(2, 3), seen(2, kIdle + 2), seen(1, kIdle + 3)}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(meters.records().size(), 1U) << "what a sum would have hidden";
  EXPECT_THAT(meters.observe({seen(1, kIdle + 4), seen(1, 2 * kIdle + 2)}), IsEmpty()) << "by a nanosecond";
  meters.finish();
}

TEST(MeterOfSums, reads_all_packets_where_a_flow_of_the_batch_may_be_evicted_by_it) {
  Meters meters(2, {kIdle, kActive});
  EXPECT_THAT(meters.observe({seen(1, 1), seen(2, 2), seen(3, 3), seen(1, 4)}), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(meters.records().size(), 2U);
  EXPECT_THAT(meters.observe({seen(4, 5), seen(5, 6), seen(4, 7)}), IsEmpty()) << "as many flows as there is room for";
  meters.finish();
}

TEST(MeterOfSums, reads_the_packets_of_a_flow_whose_active_time_out_is_in_the_batch) {
  Meters meters(10, {kIdle, kIdle});
  meters.observe({seen(1, 1, 100, 1), seen(2, 5)});
  EXPECT_THAT(meters.observe({seen(1, 10, 100, 2, 3), seen(2, 11), seen(1, kIdle, 100, 4), seen(2, kIdle),
                              seen(1, kIdle + 1, 100, 8, 5), seen(1, kIdle + 2, 100, 16)}),
              ElementsAre(0, 2, 4, 5));
  ASSERT_EQ(meters.records().size(), 1U);
  EXPECT_EQ(meters.records()[0].end_reason, EndReason::kActive);
  EXPECT_EQ(meters.records()[0].tcp_flags, 7U);
  EXPECT_THAT(meters.observe({seen(2, kIdle + 10), seen(2, kIdle + 11)}), IsEmpty()) << "the next record has begun";
  meters.finish();
}

TEST(MeterOfSums, tell_the_seconds_in_between) {
  Meters meters(10, {kIdle, kActive});
  meters.observe({seen(1, 1)});
  EXPECT_THAT(meters.observe({seen(1, 2), seen(1, kTestSecond + 1), seen(1, 2 * kTestSecond + 1)}), IsEmpty());
  meters.finish();
}

/// Ways in which packets come, of which each makes other cases frequent.
struct Way {
  const char* name;
  std::uint32_t capacity;
  std::uint32_t flows;
  Timeouts timeouts;
  std::uint64_t step_ns;  ///< between packets, at most
  std::uint32_t back;     ///< percent of stamps that go back
  std::uint32_t pauses;   ///< per mille of packets that come after a pause
};

std::vector<Observation> packets_of(Way const& way, std::size_t count, std::mt19937& random) {
  std::vector<Observation> packets;
  std::uint64_t now = 1'700'000'000 * kTestSecond;
  for (std::size_t i = 0; i < count; ++i) {
    now += random() % way.step_ns + (random() % 1000 < way.pauses ? random() % (3 * kIdle) : 0);
    const std::uint64_t stamp = random() % 100 < way.back ? now - random() % (2 * kIdle) : now;
    // a few flows have most packets
    const auto flow = static_cast<std::uint32_t>(random() % (random() % 2 == 0 ? way.flows : 1 + way.flows / 8));
    packets.push_back(seen(flow, stamp, static_cast<std::uint16_t>(random()),
                           static_cast<std::uint16_t>(1U << random() % 12), static_cast<std::uint8_t>(random())));
  }
  return packets;
}

TEST(MeterOfSums, give_the_records_of_packets_one_by_one) {
  const std::vector<Way> ways{
      {"one flow", 10, 1, {kIdle, kActive}, 1'000'000'000, 0, 1},
      {"steady", 1000, 200, {kIdle, kActive}, 1'000'000, 0, 0},
      {"all different", 1000, 4'000'000'000, {kIdle, kActive}, 1'000'000, 0, 0},
      {"idle", 1000, 300, {kIdle, 0}, 200'000'000, 0, 5},
      {"active", 1000, 20, {kIdle, 2 * kTestSecond}, 50'000'000, 0, 0},
      {"full", 300, 500, {kIdle, kActive}, 10'000'000, 0, 0},
      {"too small", 3, 8, {kIdle, kActive}, 10'000'000, 0, 0},
      {"back", 1000, 50, {kIdle, kActive}, 10'000'000, 20, 2},
      {"all at once", 40, 60, {2 * kTestSecond, 3 * kTestSecond}, 40'000'000, 10, 10},
  };
  for (Way const& way : ways) {
    SCOPED_TRACE(way.name);
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
      std::mt19937 random(seed);
      const std::vector<Observation> packets = packets_of(way, 6000, random);
      Meters meters(way.capacity, way.timeouts);
      for (std::size_t first = 0; first < packets.size();) {
        const std::size_t count = std::min<std::size_t>(random() % 400, packets.size() - first);
        const auto begin = packets.begin() + static_cast<std::ptrdiff_t>(first);
        meters.observe({begin, begin + static_cast<std::ptrdiff_t>(count)}, static_cast<std::uint32_t>(first));
        first += count;
        if (random() % 10 == 0) {
          meters.tick(packets[first == 0 ? 0 : first - 1].arrival_ns + random() % kTestSecond);
        }
        ASSERT_FALSE(HasFailure());
      }
      meters.finish();
      ASSERT_FALSE(meters.records().empty());
    }
  }
}

}  // namespace
}  // namespace catena::monitor
