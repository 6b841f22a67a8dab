// SPDX-License-Identifier: Apache-2.0
#include "meter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <limits>
#include <map>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using nf::testing::Frame;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::uint64_t kMeterIdle = 15 * kTestSecond;
constexpr std::uint64_t kMeterActive = 60 * kTestSecond;

Observation seen_by_meter(std::uint32_t src, std::uint64_t arrival_ns, std::uint16_t length = 100,
                          std::uint16_t flags = 0, std::uint8_t tos = 0) {
  return {testing::key(src, 9, 1, 2, 6), arrival_ns, length, flags, tos};
}

/// A meter of `capacity` flows that has seen `packets`.
struct Metered {
  Metered(std::uint32_t capacity, std::vector<Observation> const& packets,
          Timeouts timeouts = {kMeterIdle, kMeterActive})
      : meter(std::move(*FlowTable::create(capacity)), timeouts, sink) {
    meter.observe(packets);
  }
  std::vector<std::uint32_t> sources() const {
    std::vector<std::uint32_t> result;
    for (FlowRecord const& record : sink.records) {
      result.push_back(record.key.whole().source.v4());
    }
    return result;
  }
  std::vector<EndReason> reasons() const {
    std::vector<EndReason> result;
    for (FlowRecord const& record : sink.records) {
      result.push_back(record.end_reason);
    }
    return result;
  }
  RecordingSink sink;
  Meter meter;
};

TEST(Meter, counts_packets_bytes_times_and_flags_of_a_flow) {
  Metered metered(10, {seen_by_meter(1, 50, 60, 0x02, 0x28), seen_by_meter(2, 55), seen_by_meter(1, 70, 1500, 0x10),
                       seen_by_meter(1, 65, 40, 0x811)});
  EXPECT_THAT(metered.sink.records, SizeIs(0));
  metered.meter.finish();
  EXPECT_THAT(
      metered.sink.records,
      ElementsAre(FlowRecord{testing::key(2, 9, 1, 2, 6), 1, 100, 55, 55, 0, 0, EndReason::kForcedEnd},
                  FlowRecord{testing::key(1, 9, 1, 2, 6), 3, 1600, 50, 70, 0x813, 0x28, EndReason::kForcedEnd}));
}

TEST(Meter, counts_beyond_32_bits) {
  std::vector<Observation> packets(70'000, seen_by_meter(1, 0, 65'535));
  Metered metered(10, packets);
  metered.meter.finish();
  EXPECT_EQ(metered.sink.records[0].bytes, 70'000ULL * 65'535);
}

TEST(Meter, a_flow_ends_when_it_was_idle_for_the_whole_time_out) {
  Metered metered(10, {seen_by_meter(1, 0), seen_by_meter(2, kMeterIdle - 1)});
  EXPECT_THAT(metered.sink.records, SizeIs(0));
  metered.meter.observe(std::vector{seen_by_meter(2, kMeterIdle)});
  EXPECT_THAT(metered.sources(), ElementsAre(1));
  EXPECT_THAT(metered.reasons(), ElementsAre(EndReason::kIdle));
  EXPECT_THAT(metered.sink.clocks, ElementsAre(kMeterIdle));
}

TEST(Meter, a_packet_after_the_idle_time_out_begins_a_new_flow) {
  Metered metered(
      10, {seen_by_meter(1, 0, 100), seen_by_meter(1, kMeterIdle - 1, 100), seen_by_meter(1, 2 * kMeterIdle - 1, 77)});
  metered.meter.finish();
  ASSERT_THAT(metered.reasons(), ElementsAre(EndReason::kIdle, EndReason::kForcedEnd));
  EXPECT_EQ(metered.sink.records[0].packets, 2U);
  EXPECT_EQ(metered.sink.records[1].bytes, 77U);
  EXPECT_EQ(metered.sink.records[1].first_ns, 2 * kMeterIdle - 1);
  EXPECT_EQ(metered.meter.counts().flows, 2U);
}

TEST(Meter, a_flow_that_goes_on_is_exported_at_the_active_time_out_and_counted_anew) {
  std::vector<Observation> packets;
  for (std::uint64_t second = 0; second <= 150; second += 10) {
    packets.push_back(seen_by_meter(1, second * kTestSecond, 100, second == 0 ? 0x02 : 0x10));
  }
  Metered metered(10, packets);
  metered.meter.finish();
  ASSERT_THAT(metered.reasons(), ElementsAre(EndReason::kActive, EndReason::kActive, EndReason::kForcedEnd));
  EXPECT_EQ(metered.sink.records[0].packets, 6U);
  EXPECT_EQ(metered.sink.records[0].tcp_flags, 0x12);
  EXPECT_EQ(metered.sink.records[1].packets, 6U);
  EXPECT_EQ(metered.sink.records[1].first_ns, 60 * kTestSecond);
  EXPECT_EQ(metered.sink.records[1].tcp_flags, 0x10);
  EXPECT_EQ(metered.sink.records[2].packets, 4U);
  EXPECT_EQ(metered.meter.counts().flows, 1U);
  EXPECT_EQ(metered.meter.counts().exported, 3U);
}

TEST(Meter, without_active_time_out_a_flow_is_one_record) {
  std::vector<Observation> packets;
  for (std::uint64_t second = 0; second < 100'000; second += 10) {
    packets.push_back(seen_by_meter(1, second * kTestSecond));
  }
  Metered metered(10, packets, {kMeterIdle, 0});
  metered.meter.finish();
  ASSERT_THAT(metered.sink.records, SizeIs(1));
  EXPECT_EQ(metered.sink.records[0].packets, 10'000U);
}

TEST(Meter, a_full_table_evicts_the_least_recently_used_flow) {
  Metered metered(3, {seen_by_meter(1, 1), seen_by_meter(2, 2), seen_by_meter(3, 3), seen_by_meter(1, 4),
                      seen_by_meter(4, 5), seen_by_meter(5, 6)});
  EXPECT_THAT(metered.sources(), ElementsAre(2, 3));
  EXPECT_THAT(metered.reasons(), ElementsAre(EndReason::kLackOfResources, EndReason::kLackOfResources));
  metered.meter.finish();
  EXPECT_THAT(metered.sources(), ElementsAre(2, 3, 1, 4, 5));
  EXPECT_EQ(metered.meter.counts().evicted, 2U);
  EXPECT_EQ(metered.meter.counts().peak, 3U);
  EXPECT_EQ(metered.meter.counts().flows, 5U);
}

TEST(Meter, an_idle_flow_in_a_full_table_is_idle_and_not_evicted) {
  Metered metered(1, {seen_by_meter(1, 0), seen_by_meter(2, kMeterIdle)});
  EXPECT_THAT(metered.reasons(), ElementsAre(EndReason::kIdle));
  EXPECT_EQ(metered.meter.counts().evicted, 0U);
}

TEST(Meter, one_packet_ends_only_some_flows_and_the_next_ones_the_others) {
  std::vector<Observation> packets;
  for (std::uint32_t src = 0; src < 100; ++src) {
    packets.push_back(seen_by_meter(src, 0));
  }
  Metered metered(100, packets);
  metered.meter.observe(std::vector{seen_by_meter(1000, kMeterIdle)});
  EXPECT_GT(metered.sink.records.size(), 0U);
  EXPECT_LT(metered.sink.records.size(), 10U);
  metered.meter.observe(
      std::vector{seen_by_meter(99, kMeterIdle)});  // its turn has not come, but its packet must not revive it
  for (int i = 0; i < 100; ++i) {
    metered.meter.observe(std::vector{seen_by_meter(1000, kMeterIdle)});
  }
  EXPECT_THAT(metered.sink.records, SizeIs(100));
  EXPECT_THAT(metered.reasons(), ::testing::Each(EndReason::kIdle));
}

TEST(Meter, flows_that_are_idle_at_the_end_have_that_reason) {
  std::vector<Observation> packets;
  for (std::uint32_t src = 0; src < 100; ++src) {
    packets.push_back(seen_by_meter(src, 0));
  }
  packets.push_back(seen_by_meter(1000, kMeterIdle));
  Metered metered(200, packets);
  metered.meter.finish();
  const std::vector<EndReason> reasons = metered.reasons();
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), EndReason::kIdle), 100);
  EXPECT_EQ(reasons.back(), EndReason::kForcedEnd);
}

TEST(Meter, stamps_that_go_back_neither_end_flows_nor_move_the_clock) {
  Metered metered(10, {seen_by_meter(1, 100 * kTestSecond), seen_by_meter(1, 0), seen_by_meter(2, 50 * kTestSecond),
                       seen_by_meter(1, 101 * kTestSecond)});
  EXPECT_THAT(metered.sink.records, SizeIs(0));
  EXPECT_EQ(metered.meter.clock_ns(), 101 * kTestSecond);
  metered.meter.finish();
  EXPECT_THAT(metered.sources(), ElementsAre(2, 1));
  EXPECT_EQ(metered.sink.records[1].first_ns, 0U);
  EXPECT_EQ(metered.sink.records[1].last_ns, 101 * kTestSecond);
}

TEST(Meter, goes_on_ending_flows_after_one_stamp_far_ahead) {
  Metered metered(10, {seen_by_meter(1, kTestSecond), seen_by_meter(2, 1'000'000 * kTestSecond)});
  std::vector<Observation> packets(packet::PacketClock::kStepPackets, seen_by_meter(3, 2 * kTestSecond));
  packets.push_back(seen_by_meter(3, 20 * kTestSecond));
  metered.meter.observe(packets);
  EXPECT_THAT(metered.sources(), ElementsAre(1, 2, 3)) << "2 and 3 were idle for 18 s";
}

TEST(Meter, a_tick_ends_flows_that_are_idle_and_tells_of_the_second) {
  Metered metered(10, {seen_by_meter(1, 100 * kTestSecond), seen_by_meter(2, 101 * kTestSecond)});
  metered.meter.tick(115 * kTestSecond - 1);
  EXPECT_THAT(metered.sink.records, SizeIs(0));
  metered.meter.tick(115 * kTestSecond);
  EXPECT_THAT(metered.sources(), ElementsAre(1));
  EXPECT_THAT(metered.reasons(), ElementsAre(EndReason::kIdle));
  metered.meter.tick(116 * kTestSecond);
  EXPECT_THAT(metered.sources(), ElementsAre(1, 2));
  EXPECT_THAT(metered.sink.seconds,
              ElementsAre(100 * kTestSecond, 101 * kTestSecond, 115 * kTestSecond - 1, 116 * kTestSecond));
}

TEST(Meter, a_tick_ends_a_bounded_number_of_flows_and_the_next_ones_the_rest) {
  constexpr std::uint32_t kFlows = 3 * Meter::kExpiriesPerTick;
  std::vector<Observation> packets;
  for (std::uint32_t src = 0; src < kFlows; ++src) {
    packets.push_back(seen_by_meter(src, 0));
  }
  Metered metered(kFlows, packets);
  for (std::uint32_t ticks = 1; ticks <= 3; ++ticks) {
    metered.meter.tick(kMeterIdle);
    EXPECT_THAT(metered.sink.records, SizeIs(ticks * Meter::kExpiriesPerTick));
  }
}

TEST(Meter, packets_that_were_on_their_way_when_a_tick_came_count_as_usual) {
  Metered metered(10, {seen_by_meter(1, 100 * kTestSecond)});
  metered.meter.tick(101 * kTestSecond);
  metered.meter.observe(std::vector{seen_by_meter(1, 100 * kTestSecond + 7)});
  metered.meter.finish();
  ASSERT_THAT(metered.sink.records, SizeIs(1));
  EXPECT_EQ(metered.sink.records[0].last_ns, 100 * kTestSecond + 7);
}

TEST(Meter, the_latest_possible_stamp_does_no_harm) {
  constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();
  Metered metered(10, {seen_by_meter(1, 5), seen_by_meter(2, kEnd), seen_by_meter(1, 6), seen_by_meter(2, 7)});
  metered.meter.finish();
  EXPECT_THAT(metered.sources(), ElementsAre(1, 1, 2));
  EXPECT_EQ(metered.sink.records[2].last_ns, kEnd);
}

TEST(Meter, tells_the_sink_of_each_second_that_passes_once) {
  Metered metered(
      10, {seen_by_meter(1, 10 * kTestSecond), seen_by_meter(1, 10 * kTestSecond + 5),
           seen_by_meter(1, 11 * kTestSecond), seen_by_meter(1, 2 * kTestSecond), seen_by_meter(1, 20 * kTestSecond)});
  EXPECT_THAT(metered.sink.seconds, ElementsAre(10 * kTestSecond, 11 * kTestSecond, 20 * kTestSecond));
}

TEST(Meter, a_million_flows_fit_and_the_next_ones_evict_one_each) {
  constexpr std::uint32_t kFlows = 1'000'000;
  constexpr std::uint32_t kMore = 12'345;
  std::vector<Observation> packets;
  for (std::uint32_t src = 0; src < kFlows + kMore; ++src) {
    packets.push_back(seen_by_meter(src, src));
  }
  Metered metered(kFlows, packets);
  ASSERT_THAT(metered.sink.records, SizeIs(kMore));
  EXPECT_EQ(metered.meter.counts().evicted, kMore);
  EXPECT_EQ(metered.meter.counts().peak, kFlows);
  metered.meter.finish();
  ASSERT_THAT(metered.sink.records, SizeIs(kFlows + kMore));
  EXPECT_EQ(metered.meter.counts().evicted, kMore);
  for (std::uint32_t src = 0; src < kFlows + kMore; ++src) {
    ASSERT_EQ(metered.sink.records[src].key.whole().source.v4(), src);
    ASSERT_EQ(metered.sink.records[src].end_reason, src < kMore ? EndReason::kLackOfResources : EndReason::kForcedEnd);
  }
}

/// The observation of one frame.
Observation observed(Frame const& frame) {
  nf::testing::PacketStore store(std::vector<Frame>(1, frame));
  EXPECT_TRUE(store.all()[0].is(packet::kIpv4));
  return observe(store.all()[0]);
}

/// An IPv4 frame of this protocol without a layer 4 that anybody knows.
Frame plain_frame(std::uint8_t protocol, std::vector<std::uint8_t> const& payload) {
  return nf::testing::make_datagram(protocol, 0xC0000201, 0xC6336402, payload);
}

TEST(Observe, tcp_gives_ports_and_control_bits_without_the_data_offset) {
  Frame frame = nf::testing::with_tos(nf::testing::make_frame(6, 0xC0000201, 0xC6336402, 40'000, 443, "hello"), 0xB8);
  frame[46] = 0x51;  // data offset 5, the bit that RFC 9768 calls AE
  frame[47] = 0xC2;  // CWR, ECE, SYN
  const Observation result = observed(frame);
  EXPECT_EQ(result.key, testing::key(0xC0000201, 0xC6336402, 40'000, 443, 6));
  EXPECT_EQ(result.tcp_flags, 0x1C2);
  EXPECT_EQ(result.tos, 0xB8);
  EXPECT_EQ(result.length, 45);
}

TEST(Observe, length_is_that_of_the_datagram_without_padding) {
  Frame frame = nf::testing::make_frame(17, 1, 2, 3, 4, "");
  frame.resize(60, 0xEE);
  EXPECT_EQ(observed(frame).length, 28);
  EXPECT_EQ(observed(frame).tcp_flags, 0);
}

TEST(Observe, icmp_type_and_code_are_the_destination_port) {
  EXPECT_EQ(observed(plain_frame(1, {3, 13, 0, 0, 0, 0, 0, 0})).key,
            testing::key(0xC0000201, 0xC6336402, 0, 3 * 256 + 13, 1));
}

TEST(Observe, other_protocols_and_headers_cut_short_have_no_ports) {
  EXPECT_EQ(observed(plain_frame(50, {1, 2, 3, 4, 5, 6, 7, 8})).key, testing::key(0xC0000201, 0xC6336402, 0, 0, 50));
  EXPECT_EQ(observed(plain_frame(6, {1, 2, 3, 4})).key, testing::key(0xC0000201, 0xC6336402, 0, 0, 6));
  EXPECT_EQ(observed(plain_frame(17, {})).key, testing::key(0xC0000201, 0xC6336402, 0, 0, 17));
  EXPECT_EQ(observed(plain_frame(1, {8, 0, 1})).key, testing::key(0xC0000201, 0xC6336402, 0, 0, 1));
}

TEST(Observe, later_fragments_have_no_ports) {
  const Frame frame = nf::testing::make_frame(17, 0xC0000201, 0xC6336402, 5, 6, "data");
  EXPECT_EQ(observed(nf::testing::with_fragment(frame, 0x0010)).key, testing::key(0xC0000201, 0xC6336402, 0, 0, 17));
  EXPECT_EQ(observed(nf::testing::with_fragment(frame, 0x2000)).key.whole().destination_port, 6)
      << "the first one has them";
}

}  // namespace
}  // namespace catena::monitor
