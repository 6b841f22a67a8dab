// SPDX-License-Identifier: Apache-2.0
// What arrives in the clear where an association should have protected it (RFC 4301 section 5.2).
#include "ipsec_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::ipsec::testing {
namespace {

using nf::testing::make_frame;
using ::testing::HasSubstr;

constexpr std::uint32_t kTunnelEnd = 0xC6336401;
constexpr std::uint32_t kOtherTunnelEnd = 0xC6336402;

/// `selector` for the first of two tunnels; the second carries UDP to 10.9.0.0/16 and is one in UDP.
std::string associations(std::string_view selector) {
  return two_tunnels(selector, "{destination: 10.9.0.0/16, protocol: udp}");
}

Frame udp(std::uint32_t destination, std::uint16_t port, std::string_view payload = "hello") {
  return make_frame(packet::kProtocolUdp, 0x0A010001, destination, 1000, port, payload);
}
Frame tcp(std::uint32_t destination, std::uint16_t port) {
  return make_frame(packet::kProtocolTcp, 0x0A010001, destination, 1000, port, "hello");
}

Frame later_fragment(Frame frame) { return with_fragment_word(std::move(frame), 0x2010); }

/// Drops for cleartext, by packet.
std::vector<bool> dropped(std::string_view selector, std::vector<Frame> const& frames, std::string_view more = "") {
  const RunResult result = run_everywhere("decrypt", associations(selector), frames, more);
  std::vector<bool> drops;
  for (nf::testing::PacketResult const& packet : result.packets) {
    drops.push_back(packet.verdict == packet::Verdict::kDrop);
  }
  EXPECT_EQ(result.dropped("cleartext"), static_cast<std::uint64_t>(std::count(drops.begin(), drops.end(), true)));
  expect_frames(frames_of(result), frames);
  return drops;
}

TEST(Cleartext, that_an_association_protects_is_dropped_and_said_so) {
  const std::vector<Frame> frames{tcp(0x0A020001, 443), udp(0x0A090001, 53), udp(0x0A020001, 53), tcp(0x0A030001, 443)};
  const RunResult result = run_everywhere("decrypt", associations("{destination: 10.2.0.0/16, protocol: tcp}"), frames);
  EXPECT_THAT(result.records,
              ::testing::ElementsAre(R"({"packet":0,"nf":"ipsec","verdict":"drop","reason":"cleartext"})",
                                     R"({"packet":1,"nf":"ipsec","verdict":"drop","reason":"cleartext"})"));
  expect_frames(survivors(result), {frames[2], frames[3]});
}

TEST(Cleartext, passes_where_the_file_says_so) {
  const std::vector<Frame> frames{tcp(0x0A020001, 443), udp(0x0A090001, 53)};
  EXPECT_EQ(dropped("{}", frames, "cleartext: pass"), (std::vector<bool>{false, false}));
  EXPECT_EQ(dropped("{}", frames, "cleartext: drop"), (std::vector<bool>{true, true}));
}

TEST(Cleartext, selectors_with_ports_are_not_fooled_by_fragments) {
  // RFC 4301 section 7: a later fragment may belong to what the association protects, whatever its ports are
  EXPECT_EQ(dropped("{destination: 10.2.0.0/16, protocol: tcp, destination_port: 443}",
                    {tcp(0x0A020001, 443), tcp(0x0A020001, 80), later_fragment(tcp(0x0A020001, 80)),
                     later_fragment(tcp(0x0A030001, 443)), later_fragment(udp(0x0A020001, 443))}),
            (std::vector<bool>{true, false, true, false, false}));
}

TEST(Cleartext, without_a_whole_transport_header_may_have_any_port) {
  const Frame cut = with_fragment_word(nf::testing::ends_after(tcp(0x0A020001, 80), 8), 0x2000);
  EXPECT_EQ(dropped("{destination: 10.2.0.0/16, protocol: tcp, destination_port: 443}", {cut}),
            (std::vector<bool>{true}));
}

TEST(Cleartext, protocols_without_ports_do_not_match_selectors_with_ports) {
  Frame icmp = udp(0x0A020001, 443);
  icmp[23] = packet::kProtocolIcmp;
  EXPECT_EQ(dropped("{destination: 10.2.0.0/16, destination_port: 443}", {icmp, udp(0x0A020001, 443)}),
            (std::vector<bool>{false, true}));
}

TEST(Cleartext, that_negotiates_keys_with_a_tunnel_end_always_passes) {
  const std::string ike("\0\0\0\0IKE", 7);
  EXPECT_EQ(dropped("{}",
                    {
                        udp(kTunnelEnd, 500, "IKE"),
                        udp(kTunnelEnd, 4500, ike),
                        udp(kTunnelEnd, 4500, "\xFF"),
                        udp(kOtherTunnelEnd, 4500, ike),
                        udp(kOtherTunnelEnd, 4500, "\xFF"),
                        udp(0xC6336403, 500, "IKE"),  // nobody's tunnel ends there
                        udp(0xC6336403, 4500, ike),
                        udp(kTunnelEnd, 4500, "no marker"),  // that tunnel is not one in UDP
                        udp(kTunnelEnd, 501, "IKE"),
                        tcp(kTunnelEnd, 500),
                    }),
            (std::vector<bool>{false, false, false, false, false, true, true, true, true, true}));
}

TEST(Cleartext, what_was_protected_is_not_called_cleartext) {
  const std::vector<Frame> frames{tcp(0x0A020001, 443), udp(0x0A090001, 53)};
  const auto sa_file = associations("{protocol: tcp}");
  const RunResult sent = run_everywhere("encrypt", sa_file, frames, "", {64});
  ASSERT_EQ(survivors(sent).size(), 2U);
  const RunResult back = run_everywhere("decrypt", sa_file, frames_of(sent));
  expect_frames(survivors(back), frames);
}

TEST(Cleartext, is_a_key_of_decrypt_alone) {
  const auto nf = make("encrypt", associations("{}"), "cleartext: pass");
  ASSERT_FALSE(nf.ok());
  EXPECT_THAT(std::string(nf.status().message()), HasSubstr("test.yaml:3:1: unknown key 'cleartext'"));
  const auto wrong = make("decrypt", associations("{}"), "cleartext: maybe");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("'cleartext' is 'maybe'; allowed: drop, pass"));
}

}  // namespace
}  // namespace catena::ipsec::testing
