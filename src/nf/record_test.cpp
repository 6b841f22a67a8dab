// SPDX-License-Identifier: Apache-2.0
#include "nf/record.hpp"

#include <catena/core/text.hpp>
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
            R"({"packet":0,"ts":"2000-02-29T00:00:00.000000001Z","ethertype":"0x0806","nf":"nf","verdict":"pass",)"
            R"("rule":3})");
  Frame llc(60, 0);
  llc[13] = 46;
  EXPECT_EQ(
      line_of(llc, 0),
      R"({"packet":0,"ts":"1970-01-01T00:00:00.000000000Z","ethertype":"llc","nf":"nf","verdict":"pass","rule":3})");
  EXPECT_EQ(line_of(Frame(13, 0xFF), 0),
            R"({"packet":0,"ts":"1970-01-01T00:00:00.000000000Z","nf":"nf","verdict":"pass","rule":3})");
}

/// An ICMPv6 packet from 2001:db8::1 to ff02::1:ff00:1, with tags.
Frame ipv6_frame(unsigned tags) {
  Frame frame(12, 2);
  const Frame rest{0x86, 0xDD, 0x60, 0, 0, 0, 0, 8, 58, 255, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0,
                   1,    0xFF, 2,    0, 0, 0, 0, 0, 0,  0,   0,    0,    1,    0xFF, 0, 0, 1, 135, 0, 0, 0, 0, 0, 0, 0};
  frame.insert(frame.end(), rest.begin(), rest.end());
  return testing::with_vlan(std::move(frame), tags);
}

TEST(Record, what_no_nf_inspects_has_its_type_and_the_addresses_after_all_tags) {
  constexpr const char* kBegin = R"({"packet":0,"ts":"1970-01-01T00:00:00.000000000Z","ethertype":)";
  constexpr const char* kEnd = R"("nf":"nf","verdict":"pass","rule":3})";
  for (const unsigned tags : {0U, 1U, 3U, 9U}) {
    EXPECT_EQ(line_of(ipv6_frame(tags), 0),
              concat(kBegin, R"("0x86dd","src":"2001:db8::1","dst":"ff02::1:ff00:1","proto":58,)", kEnd))
        << tags;
  }
  const Frame udp = make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 53, 53, "x");
  EXPECT_EQ(line_of(testing::with_vlan(udp, 3), 0),
            concat(kBegin, R"("0x0800","src":"10.0.0.1","dst":"10.0.0.2","proto":17,)", kEnd));
  for (std::size_t bytes = 12; bytes < 54 + 12; ++bytes) {  // as long as it is, for AddressSanitizer
    Frame cut = ipv6_frame(3);
    cut.resize(bytes);
    line_of(cut, 0);
  }
  Frame no_ipv6 = ipv6_frame(0);
  no_ipv6[14] = 0x45;
  EXPECT_EQ(line_of(no_ipv6, 0), concat(kBegin, R"("0x86dd",)", kEnd)) << "another version";
}

TEST(Eve, an_alert_on_ipv6_has_its_addresses) {
  PacketStore store(std::vector<Frame>{ipv6_frame(1)}, std::vector<std::uint64_t>{0});
  const Arrival arrival = arrival_of(store.all()[0]);
  const Instance instance("nf", kDescriptor, nullptr, OnUnsupported::kPass, true);
  EXPECT_EQ(
      format_eve("c", instance, {0, "{}"}, &arrival, true),
      R"({"timestamp":"1970-01-01T00:00:00.000000+0000","pcap_cnt":1,"event_type":"alert","ethertype":"0x86dd",)"
      R"("src_ip":"2001:db8::1","dest_ip":"ff02::1:ff00:1","proto":"IPv6-ICMP","alert":{},"chain":"c","nf":"nf"})");
}

TEST(Record, the_last_time_that_a_stamp_can_hold_is_a_time) {
  EXPECT_EQ(utc_of(UINT64_MAX), "2554-07-21T23:34:33.709551615Z");
}

}  // namespace
}  // namespace catena::nf
