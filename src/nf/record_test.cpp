// SPDX-License-Identifier: Apache-2.0
#include "nf/record.hpp"

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace catena::nf {
namespace {

using testing::Frame;
using testing::make_frame;
using testing::PacketStore;

constexpr Descriptor kDescriptor{.type = "noop", .help = "", .drop_reasons = {}, .config = {}};

/// The line of a packet that holds `frame`, came at `arrival_ns` and has the number 0.
std::string line_of(Frame const& frame, std::uint64_t arrival_ns) {
  PacketStore store(std::vector<Frame>{frame}, std::vector<std::uint64_t>{arrival_ns});
  const Arrival arrival = arrival_of(store.all()[0]);
  const Instance instance("nf", kDescriptor, nullptr, OnUnsupported::kPass, true);
  return format_record(instance, {0, packet::Verdict::kPass, -1, "\"rule\":3"}, &arrival);
}

TEST(Record, a_line_has_the_time_and_the_five_tuple) {
  EXPECT_EQ(line_of(make_frame(packet::kProtocolTcp, 0xC0000201, 0x0AFF0010, 40000, 80, "x"), 1700000000'123456789),
            R"({"packet":0,"ts":"2023-11-14T22:13:20.123456789Z","src":"192.0.2.1","dst":"10.255.0.16","proto":6,)"
            R"("sport":40000,"dport":80,"nf":"nf","verdict":"pass","rule":3})");
}

TEST(Record, what_a_packet_has_not_is_left_out) {
  Frame later = make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 53, 53, "x");
  packet::store_be16(later.data() + packet::kEthernetBytes + 6, 0x0001);
  EXPECT_EQ(line_of(later, 0),
            R"({"packet":0,"ts":"1970-01-01T00:00:00.000000000Z","src":"10.0.0.1","dst":"10.0.0.2","proto":17,)"
            R"("nf":"nf","verdict":"pass","rule":3})");
  Frame arp(60, 0);
  packet::store_be16(arp.data() + 12, 0x0806);
  EXPECT_EQ(line_of(arp, 951782400'000000001),
            R"({"packet":0,"ts":"2000-02-29T00:00:00.000000001Z","nf":"nf","verdict":"pass","rule":3})");
}

TEST(Record, the_last_time_that_a_stamp_can_hold_is_a_time) {
  EXPECT_EQ(utc_of(UINT64_MAX), "2554-07-21T23:34:33.709551615Z");
}

}  // namespace
}  // namespace catena::nf
