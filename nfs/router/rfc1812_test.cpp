// SPDX-License-Identifier: Apache-2.0
// What a router must not forward (RFC 1812), and what it answers. tests/oracle/kernel_router.py holds the same to
// Linux.
#include "router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/run_everywhere.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/icmp.hpp>

#include <initializer_list>
#include <map>
#include <string>

namespace catena::router {
namespace {

using nf::testing::destination_of;
using nf::testing::Frame;
using nf::testing::make_arp_request;
using nf::testing::make_frame;
using nf::testing::RunResult;
using nf::testing::source_of;
using nf::testing::with_header_checksum;
using ::testing::HasSubstr;

constexpr std::uint32_t kHost = 0x0A090002;    // 10.9.0.2
constexpr std::uint32_t kServer = 0xC6336402;  // 198.51.100.2
constexpr std::uint32_t kOwn = 0x0A090001;     // 10.9.0.1
const Frame kLanMac{2, 0, 0, 0, 9, 1};
const Frame kHostMac{2, 0, 0, 0, 9, 2};

constexpr std::string_view kWithAddresses =
    "routes: routes.txt\n"
    "ports:\n"
    "  - {port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 10.9.0.1/24}\n"
    "  - {port: 1, mac: 02:00:00:00:51:01, next_hop_mac: 02:00:00:00:51:02, address: 198.51.100.1/24}\n";

Frame with_macs(Frame frame, Frame const& dst, Frame const& src) {
  std::copy(dst.begin(), dst.end(), frame.begin());
  std::copy(src.begin(), src.end(), frame.begin() + 6);
  return frame;
}
Frame from_host(std::uint32_t src, std::uint32_t dst, std::uint8_t ttl = 64) {
  return with_macs(make_frame(17, src, dst, 1, 2, "data", ttl), kLanMac, kHostMac);
}

class Rfc1812 : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("routes.txt", "0.0.0.0/0 1\n10.9.0.0/24 0\n"); }

  Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml) {
    return nf::testing::make_nf(catena_nf_router(), yaml, folder_.path());
  }
  RunResult run(std::vector<Frame> const& frames, std::string_view yaml = "routes: routes.txt",
                nf::testing::RunOptions const& options = {}) {
    return nf::testing::run_everywhere(
        catena_nf_router(), [&] { return make(yaml); }, frames, options);
  }
  /// Runs each frame and expects it to be dropped, unchanged, for `reason`.
  void expect_dropped(std::vector<Frame> const& frames, std::string_view reason,
                      std::string_view yaml = "routes: routes.txt") {
    const RunResult result = run(frames, yaml);
    EXPECT_EQ(result.dropped(reason), frames.size()) << reason;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(result.packets[i], (nf::testing::PacketResult{frames[i], packet::Verdict::kDrop, 0})) << i;
    }
  }
  void expect_forwarded(std::vector<Frame> const& frames, std::string_view yaml = "routes: routes.txt") {
    const RunResult result = run(frames, yaml);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass) << i;
      EXPECT_EQ(result.packets[i].frame[22], frames[i][22] - 1) << i;
    }
  }

  ScratchFolder folder_;
};

TEST_F(Rfc1812, no_packet_from_an_address_that_is_no_hosts_is_forwarded) {
  std::vector<Frame> frames;
  for (const std::uint32_t src : {0x00000000U, 0x00FFFFFFU, 0x7F000001U, 0x7FFFFFFFU, 0xA9FE0001U, 0xA9FEFFFFU,
                                  0xE0000000U, 0xEFFFFFFFU, 0xF0000000U, 0xFFFFFFFFU}) {
    frames.push_back(from_host(src, kServer));
  }
  expect_dropped(frames, "martian_source");
  // their neighbours are hosts
  frames.clear();
  for (const std::uint32_t src : {0x01000000U, 0x7EFFFFFFU, 0x80000000U, 0xA9FDFFFFU, 0xA9FF0000U, 0xDFFFFFFFU}) {
    frames.push_back(from_host(src, kServer));
  }
  expect_forwarded(frames);
}

TEST_F(Rfc1812, no_packet_to_an_address_that_is_no_hosts_is_forwarded) {
  std::vector<Frame> frames;
  for (const std::uint32_t dst :
       {0x00000000U, 0x00FFFFFFU, 0x7F000001U, 0x7FFFFFFFU, 0xA9FE0001U, 0xA9FEFFFFU, 0xF0000000U, 0xFFFFFFFEU}) {
    frames.push_back(from_host(kHost, dst));
  }
  expect_dropped(frames, "martian_destination");
  expect_dropped({from_host(kHost, 0xFFFFFFFF)}, "broadcast");
  frames.clear();
  for (const std::uint32_t dst : {0x01000000U, 0x7EFFFFFFU, 0x80000000U, 0xA9FDFFFFU, 0xA9FF0000U, 0xDFFFFFFFU}) {
    frames.push_back(from_host(kHost, dst));
  }
  expect_forwarded(frames);
}

TEST_F(Rfc1812, multicast_is_forwarded_where_that_is_configured_but_never_off_its_link) {
  const std::vector<Frame> groups{from_host(kHost, 0xE0000101), from_host(kHost, 0xEFFFFFFF)};
  const std::vector<Frame> local{from_host(kHost, 0xE0000000), from_host(kHost, 0xE00000FF)};
  const std::string forwarding = std::string(kWithAddresses) + "multicast: forward\n";
  expect_dropped(groups, "multicast");
  expect_dropped(local, "multicast", forwarding);
  const RunResult result = run(groups, forwarding);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Frame const& out = result.packets[i].frame;
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass);
    EXPECT_EQ(Frame(out.begin(), out.begin() + 12), (Frame{2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 0x51, 1}))
        << "the group's address stays, the source is the router's";
  }
}

TEST_F(Rfc1812, broadcasts_of_networks_at_its_ports_are_dropped) {
  expect_dropped({from_host(kHost, 0xC63364FF), from_host(kHost, 0xC6336400), from_host(kHost, 0x0A0900FF)},
                 "broadcast", kWithAddresses);
  expect_forwarded({from_host(kHost, 0xC63364FE), from_host(kHost, 0xC63365FF)}, kWithAddresses);
  // networks of two addresses have no broadcast (RFC 3021)
  expect_forwarded({from_host(kHost, 0xC6336401)},
                   "{routes: routes.txt, ports: [{port: 1, mac: 02:00:00:00:51:01, next_hop_mac: 02:00:00:00:51:02, "
                   "address: 198.51.100.0/31}]}");
}

TEST_F(Rfc1812, a_wrong_header_checksum_is_dropped_with_options_too) {
  const Frame plain = from_host(kHost, kServer);
  const Frame options = with_header_checksum(nf::testing::with_options(plain, 1));
  expect_forwarded({plain, options});
  for (Frame frame : {plain, options}) {
    std::vector<Frame> wrong;
    for (std::size_t byte = 14; byte < 14U + (frame[14] & 0xFU) * 4U; ++byte) {
      if (byte == 14 || byte == 16 || byte == 17) {
        continue;  // lengths: the frame would be no IPv4
      }
      frame[byte] ^= 0x10;
      wrong.push_back(frame);
      frame[byte] ^= 0x10;
    }
    const RunResult result = run(wrong, kWithAddresses);
    EXPECT_EQ(result.dropped("bad_checksum"), wrong.size());
    // a TTL of 1 with a wrong checksum is no reason to answer
    frame[22] = 1;
    EXPECT_EQ(run({frame}, kWithAddresses).dropped("bad_checksum"), 1U);
  }
}

TEST_F(Rfc1812, frames_for_other_stations_are_dropped_where_the_router_is_told_to) {
  const std::string own = std::string(kWithAddresses) + "frames: own\n";
  const Frame for_lan = from_host(kHost, kServer);
  const Frame for_wan = with_macs(for_lan, {2, 0, 0, 0, 0x51, 1}, kHostMac);
  std::vector<Frame> others;
  for (const Frame& mac : {Frame{2, 0, 0, 0, 9, 3}, Frame{2, 0, 0, 0, 8, 1}, Frame{3, 0, 0, 0, 9, 1},
                           Frame{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, Frame{1, 0, 0x5E, 0, 0, 5}, Frame(6, 0)}) {
    others.push_back(with_macs(for_lan, mac, kHostMac));
  }
  expect_forwarded({for_lan, for_wan}, own);
  expect_dropped(others, "other_mac", own);
  expect_forwarded(others);  // `any` is what captures have
  const Frame group = with_macs(from_host(kHost, 0xE0000101), {1, 0, 0x5E, 0, 1, 1}, kHostMac);
  EXPECT_EQ(run({group}, own + "multicast: forward\n").packets[0].verdict, packet::Verdict::kPass);
}

TEST_F(Rfc1812, on_a_live_port_frames_for_others_are_dropped_by_default) {
  const auto started = [this](std::string_view yaml, bool live) {
    Result<nf::Config> config = nf::Config::parse(yaml, folder_.path("chain.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    config->set_ends({.live_rx = live, .live_tx = live});
    Result<std::unique_ptr<nf::Nf>> router = catena_nf_router().create(*config);
    EXPECT_TRUE(router.ok()) << router.status();
    return (*router)->start_report()[1];
  };
  EXPECT_THAT(started(kWithAddresses, true), HasSubstr("takes frames to its own MAC addresses alone"));
  EXPECT_THAT(started(kWithAddresses, false), HasSubstr("takes frames to any MAC address"));
  EXPECT_THAT(started("routes: routes.txt", true), HasSubstr("takes frames to any MAC address"));
  EXPECT_THAT(started(std::string(kWithAddresses) + "frames: any\n", true),
              HasSubstr("takes frames to any MAC address"));
}

TEST_F(Rfc1812, without_an_address_what_is_dropped_is_not_answered) {
  const RunResult result = run({from_host(kHost, kServer, 1)});
  EXPECT_EQ(result.dropped("ttl_expired"), 1U);
  EXPECT_TRUE(result.statistics.empty());
}

/// The reply as packet/icmp.hpp makes it, which icmp_test holds to scapy.
void expect_error(nf::testing::PacketResult const& result, Frame const& about, std::uint8_t type) {
  ASSERT_EQ(result.verdict, packet::Verdict::kReply);
  Frame const& error = result.frame;
  ASSERT_GE(error.size(), 14U + 28 + about.size() - 14);
  EXPECT_EQ(Frame(error.begin(), error.begin() + 12), with_macs(Frame(12), kHostMac, kLanMac));
  EXPECT_EQ(source_of(error), kOwn) << "from the address of the port that the packet came in on";
  EXPECT_EQ(destination_of(error), kHost);
  EXPECT_EQ(error[34], type);
  EXPECT_EQ(error[35], 0);
  EXPECT_TRUE(std::equal(about.begin() + 14, about.end(), error.begin() + 42)) << "quoted as it came";
}

TEST_F(Rfc1812, time_exceeded_and_net_unreachable_are_reported_to_the_sender) {
  folder_.write("routes.txt", "198.51.100.0/24 1\n10.9.0.0/24 0\n");
  const std::vector<Frame> frames{from_host(kHost, kServer, 1), from_host(kHost, 0x08080808),
                                  from_host(kHost, kServer)};
  const RunResult result = run(frames, kWithAddresses);
  expect_error(result.packets[0], frames[0], 11);
  expect_error(result.packets[1], frames[1], 3);
  EXPECT_EQ(result.packets[2].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.dropped("ttl_expired") + result.dropped("no_route"), 0U);
  EXPECT_THAT(result.records[0], HasSubstr(R"("verdict":"reply")"));
  EXPECT_THAT(result.records[0], HasSubstr(R"("reply":"time_exceeded")"));
  EXPECT_THAT(result.records[1], HasSubstr(R"("reply":"net_unreachable")"));
  // nobody may be told about these
  const Frame fragment = with_header_checksum(nf::testing::with_fragment(from_host(kHost, kServer, 1), 4));
  EXPECT_EQ(run({fragment}, kWithAddresses).dropped("ttl_expired"), 1U);
  EXPECT_EQ(run({frames[0]}, std::string(kWithAddresses) + "icmp_rate: 0\n").dropped("ttl_expired"), 1U);
}

TEST_F(Rfc1812, errors_are_no_more_than_the_rate_allows) {
  const std::vector<Frame> frames(100, from_host(kHost, kServer, 1));
  nf::testing::RunOptions options;
  for (std::uint64_t i = 0; i < frames.size(); ++i) {
    options.arrivals_ns.push_back(i < 50 ? 1000 : 1'000'000'000 + 1000);  // a second after the first half
  }
  const RunResult result = run(frames, std::string(kWithAddresses) + "icmp_rate: 7\n", options);
  EXPECT_EQ(result.dropped("ttl_expired"), 86U) << "7 at once, and 7 a second later";
  EXPECT_EQ(std::count_if(result.packets.begin(), result.packets.begin() + 50,
                          [](auto const& packet) { return packet.verdict == packet::Verdict::kReply; }),
            7);
}

TEST_F(Rfc1812, no_packet_from_its_own_or_a_broadcast_address_is_forwarded_or_answered) {
  std::vector<Frame> frames;
  for (const std::uint32_t src : {0x0A090001U, 0xC6336401U, 0x0A0900FFU, 0x0A090000U, 0xC63364FFU, 0xC6336400U}) {
    frames.push_back(from_host(src, kServer));
    frames.push_back(from_host(src, kServer, 1));
    frames.push_back(with_macs(nf::testing::make_echo(src, kOwn, 7, 1, "hello"), kLanMac, kHostMac));
  }
  expect_dropped(frames, "martian_source", kWithAddresses);
  expect_forwarded({from_host(0x0A0900FE, kServer), from_host(0x0A0901FF, kServer)}, kWithAddresses);
  expect_forwarded({from_host(0x0A090001, kServer), from_host(0xC63364FF, kServer)});  // it has no address there
}

TEST_F(Rfc1812, sources_are_found_among_those_of_many_ports) {
  std::string yaml = "routes: routes.txt\nports:\n";
  std::vector<Frame> own;
  std::vector<Frame> hosts;
  for (std::uint32_t port = 0; port < 200; ++port) {
    yaml += concat("  - {port: ", port, ", mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 11.0.",
                   port, ".1/24}\n");
    const std::uint32_t network = 0x0B000000 + (port << 8);
    for (const std::uint32_t host : {0U, 1U, 255U}) {
      own.push_back(from_host(network + host, kServer));
    }
    hosts.push_back(from_host(network + 2, kServer));
  }
  expect_dropped(own, "martian_source", yaml);
  expect_forwarded(hosts, yaml);
}

TEST_F(Rfc1812, options_are_dropped_for_a_reason_of_their_own_with_and_without_addresses) {
  const auto with_option = [](std::initializer_list<std::uint8_t> bytes) {
    Frame frame = nf::testing::with_options(from_host(kHost, kServer), 2);
    std::copy(bytes.begin(), bytes.end(), frame.begin() + 34);
    return with_header_checksum(std::move(frame));
  };
  const Frame loose = with_option({131, 7, 4, 10, 9, 0, 3, 0});
  const Frame strict = with_option({137, 7, 8, 10, 9, 0, 3, 0});
  const Frame malformed = with_option({7, 9, 4, 0, 0, 0, 0, 0});
  const Frame recorded = with_option({7, 7, 4, 0, 0, 0, 0, 0});
  const std::string quiet = std::string(kWithAddresses) + "icmp_rate: 0\n";
  for (std::string const& yaml : {std::string("routes: routes.txt"), quiet}) {
    expect_dropped({loose, strict}, "source_route", yaml);
    expect_dropped({malformed}, "bad_options", yaml);
  }
  expect_dropped({loose, strict}, "source_route", kWithAddresses);
  const RunResult answered = run({malformed}, kWithAddresses);
  EXPECT_THAT(answered.records[0], HasSubstr(R"("reply":"parameter_problem")"));
  EXPECT_EQ(answered.packets[0].frame[34], 12);
  EXPECT_EQ(answered.packets[0].frame[38], 20) << "the option";
  // without an address there is nothing to record
  const Frame kept = run({recorded}).packets[0].frame;
  EXPECT_TRUE(std::equal(kept.begin() + 34, kept.end(), recorded.begin() + 34));
}

TEST_F(Rfc1812, an_echo_request_with_a_wrong_checksum_is_not_answered) {
  Frame ping = with_macs(nf::testing::make_echo(kHost, kOwn, 7, 1, "hello"), kLanMac, kHostMac);
  ping[36] ^= 1;
  expect_dropped({ping}, "bad_icmp_checksum", kWithAddresses);
}

TEST_F(Rfc1812, the_router_answers_echo_requests_and_says_that_it_has_nothing_else) {
  const Frame ping = with_macs(nf::testing::make_echo(kHost, kOwn, 7, 1, "hello"), kLanMac, kHostMac);
  const Frame far = with_macs(nf::testing::make_echo(kHost, 0xC6336401, 7, 1, "hello"), kLanMac, kHostMac);
  const Frame query = with_macs(nf::testing::make_icmp(17, 0, kHost, kOwn, 0, Frame(4)), kLanMac, kHostMac);
  const RunResult result = run({ping, far, from_host(kHost, kOwn), query}, kWithAddresses);
  for (const std::size_t i : {0U, 1U}) {
    Frame const& reply = result.packets[i].frame;
    ASSERT_EQ(result.packets[i].verdict, packet::Verdict::kReply);
    EXPECT_EQ(reply.size(), ping.size());
    EXPECT_EQ(Frame(reply.begin(), reply.begin() + 12), with_macs(Frame(12), kHostMac, kLanMac));
    EXPECT_EQ(source_of(reply), i == 0 ? kOwn : 0xC6336401);
    EXPECT_EQ(destination_of(reply), kHost);
    EXPECT_EQ(reply[34], 0) << "echo reply";
    EXPECT_TRUE(nf::testing::has_right_checksums(reply));
    EXPECT_TRUE(std::equal(ping.begin() + 38, ping.end(), reply.begin() + 38)) << "identifier, number, data";
  }
  EXPECT_EQ(result.packets[2].frame[34], 3) << "destination unreachable";
  EXPECT_EQ(result.packets[2].frame[35], 3) << "port";
  EXPECT_THAT(result.records[2], HasSubstr(R"("reply":"port_unreachable")"));
  EXPECT_EQ(result.dropped("to_router"), 1U);
}

TEST_F(Rfc1812, arp_requests_for_its_addresses_are_answered) {
  const Frame request = make_arp_request(kHost, kOwn);
  const RunResult result = run({request}, kWithAddresses);
  ASSERT_EQ(result.packets[0].verdict, packet::Verdict::kReply);
  // RFC 826, packet reception: the fields are swapped, the hardware address put in, the operation set to reply
  Frame expected = request;
  const Frame sender_mac(request.begin() + 22, request.begin() + 28);
  std::copy(sender_mac.begin(), sender_mac.end(), expected.begin());
  std::copy(kLanMac.begin(), kLanMac.end(), expected.begin() + 6);
  expected[21] = 2;
  std::copy(kLanMac.begin(), kLanMac.end(), expected.begin() + 22);
  packet::store_be32(&expected[28], kOwn);
  std::copy(sender_mac.begin(), sender_mac.end(), expected.begin() + 32);
  packet::store_be32(&expected[38], kHost);
  EXPECT_EQ(result.packets[0].frame, expected);

  for (const std::uint16_t tag : std::initializer_list<std::uint16_t>{0x8100, 0x88A8, 0x9100, 0x9200}) {
    Frame tagged = nf::testing::with_vlan(request, 2);
    Frame tagged_reply = nf::testing::with_vlan(expected, 2);
    packet::store_be16(&tagged[12], tag);
    packet::store_be16(&tagged_reply[12], tag);
    EXPECT_EQ(run({tagged}, kWithAddresses).packets[0].frame, tagged_reply) << std::hex << tag;
  }

  const Frame for_another = make_arp_request(kHost, kHost + 5);
  Frame reply = request;
  reply[21] = 2;
  Frame stp(60, 0);
  const Frame stp_head{1, 0x80, 0xC2, 0, 0, 0, 2, 0, 0, 0, 9, 9, 0, 38, 0x42, 0x42, 3};
  std::copy(stp_head.begin(), stp_head.end(), stp.begin());
  const RunResult others = run({for_another, reply, stp}, kWithAddresses);
  EXPECT_EQ(others.dropped("arp"), 2U);
  EXPECT_EQ(others.dropped("control_frame"), 1U);

  const RunResult passed = run({request, stp}, std::string(kWithAddresses) + "arp: pass\n");
  EXPECT_EQ(passed.packets[0].verdict, packet::Verdict::kPass);
  EXPECT_EQ(passed.packets[1].verdict, packet::Verdict::kPass) << "as link_local says";
}

TEST_F(Rfc1812, arp_requests_of_senders_that_no_host_can_be_are_not_answered) {
  const auto from_hardware = [](std::initializer_list<std::uint8_t> mac) {
    Frame request = make_arp_request(kHost, kOwn);
    std::copy(mac.begin(), mac.end(), request.begin() + 22);
    return request;
  };
  std::vector<Frame> requests{from_hardware({0, 0, 0, 0, 0, 0}), from_hardware({1, 0, 0x5E, 0, 0, 1}),
                              from_hardware({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})};
  for (const std::uint32_t sender :
       {kOwn, kOwn | 0xFFU, 0x00010203U, 0x7F000001U, 0xA9FE0101U, 0xE0000001U, 0xF0000001U, 0xFFFFFFFFU}) {
    requests.push_back(make_arp_request(sender, kOwn));
  }
  EXPECT_EQ(run(requests, kWithAddresses).dropped("arp"), requests.size());
  // RFC 5227, section 2.1.1: whoever wants to use an address asks for it without one of its own
  EXPECT_EQ(run({make_arp_request(0, kOwn)}, kWithAddresses).packets[0].verdict, packet::Verdict::kReply);
}

TEST_F(Rfc1812, what_it_cannot_route_is_not_bridged) {
  Frame ipv6(60, 0);
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  EXPECT_EQ(run({ipv6, Frame(13, 0xFF), Frame()}, kWithAddresses).dropped("not_routable"), 3U);
}

TEST_F(Rfc1812, what_merely_goes_to_a_control_frames_address_is_not_bridged) {
  // as the rest of Catena has it: neither IPv6 to the groups of bridges and of Cisco, nor ARP of other networks
  const std::vector<Frame> heads{{0x01, 0x80, 0xC2, 0, 0, 0x0E, 2, 0, 0, 0, 9, 9, 0x86, 0xDD, 0x60},
                                 {0x01, 0x00, 0x0C, 0xCC, 0xCC, 0xCC, 2, 0, 0, 0, 9, 9, 0x86, 0xDD, 0x60},
                                 {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 9, 9, 0x08, 0x06, 0, 6, 8, 0, 6, 4}};
  std::vector<Frame> frames;
  for (Frame const& head : heads) {
    frames.emplace_back(60, 0);
    std::copy(head.begin(), head.end(), frames.back().begin());
  }
  for (const char* more : {"", "arp: pass\n"}) {
    EXPECT_EQ(run(frames, std::string(kWithAddresses) + more).dropped("not_routable"), frames.size()) << more;
  }
}

TEST_F(Rfc1812, wrong_configuration_says_what_to_write) {
  const std::map<std::string, std::string> cases{
      {"ports: [{port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 10.9.0.1}]",
       "as 10.9.0.1/24"},
      {"ports: [{port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 10.9.0.0/24}]",
       "no host can have"},
      {"ports: [{port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 10.9.0.255/24}]",
       "no host can have"},
      {"ports: [{port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 224.0.0.1/4}]",
       "no host can have"},
      {"arp: answer", "'arp' asks for answers, but no port has an 'address'"},
      {"icmp_rate: 5", "'icmp_rate' asks for answers, but no port has an 'address'"},
      {"frames: own", "no port has a 'mac'"},
      {"frames: mine", "allowed: own, any"},
      {"multicast: pass", "allowed: drop, forward"}};
  for (auto const& [text, message] : cases) {
    EXPECT_THAT(std::string(make("routes: routes.txt\n" + text).status().message()), HasSubstr(message)) << text;
  }
}

TEST_F(Rfc1812, shards_share_the_rate_of_errors_and_answer_each_packet_as_one_router) {
  nf::Config config =
      nf::Config::parse(std::string(kWithAddresses) + "icmp_rate: 7\n", folder_.path("test.yaml")).value();
  config.set_shard({.index = 0, .count = 3});
  std::vector<std::unique_ptr<nf::Nf>> shards;
  shards.push_back(std::move(catena_nf_router().create(config)).value());
  shards.push_back(std::move(shards[0]->replicate(1)).value());
  shards.push_back(std::move(shards[0]->replicate(2)).value());
  const std::vector<Frame> frames(50, from_host(kHost, kServer, 1));
  nf::testing::RunOptions options;
  options.arrivals_ns.assign(frames.size(), 1000);  // all at once
  const RunResult whole = run(frames, std::string(kWithAddresses) + "icmp_rate: 7\n", options);
  EXPECT_EQ(catena_nf_router().sharding, nf::Sharding::kPacket);
  std::vector<std::size_t> errors;
  for (auto& shard : shards) {
    // three packets, three, and fifty
    const std::vector<Frame> some(frames.begin(), frames.begin() + (errors.size() < 2 ? 3 : 50));
    options.arrivals_ns.assign(some.size(), 1000);
    const RunResult part = nf::testing::run(catena_nf_router(), std::move(shard), some, nullptr, options).value();
    EXPECT_EQ(part.packets[0], whole.packets[0]);
    errors.push_back(some.size() - part.dropped("ttl_expired"));
  }
  EXPECT_THAT(errors, ::testing::ElementsAre(3, 3, 1));
  EXPECT_EQ(whole.dropped("ttl_expired"), frames.size() - 7);
}

}  // namespace
}  // namespace catena::router
