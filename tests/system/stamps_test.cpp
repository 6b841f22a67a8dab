// SPDX-License-Identifier: Apache-2.0
// No stamp stops a time-out or a rate limit of an NF: soon after a packet stamped a year ahead, a year back, with 0 or
// with the latest time, and after stamps that stood still, every NF decides as if all stamps had been right.
#include "system/chain_runner.hpp"
#include "system/packet_sets.hpp"
#include "system/same_bytes.hpp"

#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

namespace catena::testing {
namespace {

using packet::testing::Frame;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStart = 1'700'000'000 * kSecond;
constexpr std::uint64_t kYear = std::uint64_t{365} * 86'400 * kSecond;
constexpr std::uint64_t kLatestStamp = std::uint64_t{0xFFFFFFFF} * kSecond;  // of a pcap file

/// What is wrong with the stamps of a section.
enum class Wrong { kLatest, kYearAhead, kYearBack, kZero, kStandsStill };
/// The first packet of all has the first one; twice the same, so that the clocks have been set back before.
constexpr std::array kSections{Wrong::kLatest,      Wrong::kYearAhead, Wrong::kYearBack,  Wrong::kZero,
                               Wrong::kStandsStill, Wrong::kLatest,    Wrong::kYearAhead, Wrong::kZero};
constexpr std::uint64_t kSectionNs = 1000 * kSecond;
constexpr std::uint64_t kTenth = kSecond / 10;
constexpr std::uint32_t kHosts = 30;
/// Every shard gets at least packet::PacketClock::kStepPackets of these, after which it knows what was wrong.
constexpr std::uint32_t kSettling = 500;
/// Then some at once, and, longer after that than the time-outs here, others.
constexpr std::uint32_t kJudged = 60;
constexpr std::uint64_t kPause = 100 * kSecond;

struct StampedTraffic {
  std::string capture;              ///< its file
  std::set<std::string> judged;     ///< stamps of the packets after the settling, as in a pcap file
  std::set<std::size_t> positions;  ///< of these packets
};

using MakeFrame = std::function<Frame(std::uint32_t host, std::uint16_t port)>;

/// The same packets with right stamps, or with wrong ones.
StampedTraffic make_traffic(MakeFrame const& make, bool is_wrong) {
  StampedTraffic traffic{(scratch_folder() / (is_wrong ? "wrong.pcap" : "right.pcap")).string(), {}, {}};
  std::vector<Frame> frames;
  std::vector<std::uint64_t> stamps_ns;
  const auto add = [&](std::uint64_t stamp_ns, std::uint16_t port) {
    frames.push_back(make(static_cast<std::uint32_t>(frames.size()) % kHosts, port));
    stamps_ns.push_back(stamp_ns);
  };
  std::uint64_t begin_ns = kStart;
  std::uint16_t port = 7000;
  for (const Wrong wrong : kSections) {
    const std::map<Wrong, std::uint64_t> stamps{
        {Wrong::kLatest, kLatestStamp},       {Wrong::kYearAhead, begin_ns + kYear},
        {Wrong::kYearBack, begin_ns - kYear}, {Wrong::kZero, 0},
        {Wrong::kStandsStill, begin_ns},
    };
    add(is_wrong ? stamps.at(wrong) : begin_ns, 1000);
    for (std::uint32_t i = 0; i < kSettling; ++i) {
      add(is_wrong && wrong == Wrong::kStandsStill ? begin_ns : begin_ns + i * kTenth, 1000);
    }
    for (std::uint64_t later_ns : {kSectionNs / 2, kSectionNs / 2 + kPause}) {
      for (std::uint32_t i = 0; i < kJudged; ++i) {
        const std::uint64_t stamp_ns = begin_ns + later_ns + i * kTenth;
        const std::array words{static_cast<std::uint32_t>(stamp_ns / kSecond),
                               static_cast<std::uint32_t>(stamp_ns % kSecond)};
        traffic.judged.emplace(reinterpret_cast<char const*>(words.data()), sizeof words);
        traffic.positions.insert(frames.size());
        add(stamp_ns, port);
      }
      ++port;
    }
    begin_ns += kSectionNs;
  }
  EXPECT_EQ(write_capture(traffic.capture, frames, stamps_ns), absl::OkStatus());
  return traffic;
}

/// NFs with a time-out or a rate, and the traffic that shows it; and NFs that have none.
struct Case {
  std::string name;
  std::vector<NfText> nfs;
  MakeFrame make;
  std::vector<std::string> statistics;  ///< what must be the same at the end
  bool has_same_bytes = true;
  /// All shards have one limit. Those of a capture are not at the same time, so a late one may get less for a while.
  bool has_common_limit = false;
};

Frame plain(std::uint32_t host, std::uint16_t port) {
  return packet::testing::make_frame(host % 2 == 0 ? packet::kProtocolUdp : packet::kProtocolTcp, 0x0A000001 + host,
                                     0xC6336401, port, 53, "data");
}

Frame with_last_hop(Frame frame) {
  frame[packet::testing::kL3 + 8] = 1;
  return packet::testing::with_header_checksum(std::move(frame));
}

Frame too_long(std::uint32_t host, std::uint16_t port) {
  constexpr std::uint16_t kDontFragment = 0x4000;
  return packet::testing::with_header_checksum(packet::testing::with_fragment(
      packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001 + host, 0xC6336401, port, 53, std::string(600, 'x')),
      kDontFragment));
}

std::vector<Case> const& cases() {
  static const std::vector<Case> kCases{
      {"firewall_nids_remark", {kFirewall, kNids, {"dscp", "remark", "map: [{from: 0, to: 10}]"}}, plain, {}},
      {"router",
       {{"rt", "router",
         "routes: routes.txt, ports: [{port: 9, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02, "
         "address: 192.0.2.1/24}]"}},
       [](std::uint32_t host, std::uint16_t port) { return with_last_hop(plain(host, port)); },
       {},
       true,
       true},
      {"ipsec", {{"vpn", "ipsec", "direction: encrypt, sa: sa-all.yaml, mtu: 600"}}, too_long, {}, true, true},
      {"nat",
       {{"nat", "nat", "inside: [10.0.0.0/8], external: [203.0.113.1], timeouts: {udp: 60, tcp_opening: 60}"}},
       plain,
       {"mappings", "half_open"},
       false},
      {"lb",
       {{"lb", "lb",
         "timeouts: {udp: 60, tcp_opening: 60}, services: [{address: 198.51.100.1, port: 53, protocol: udp, backends: "
         "[{name: a, address: 10.200.0.1, port: 53}, {name: b, address: 10.200.0.2, port: 53}]}, {address: "
         "198.51.100.1, "
         "port: 53, protocol: tcp, backends: [{name: a, address: 10.200.0.1, port: 53}]}]"}},
       plain,
       {"flows", "half_open"}},
      {"monitor", {kMonitor}, plain, {}},
  };
  return kCases;
}

class Stamps : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Nfs, Stamps, ::testing::Range<std::size_t>(0, cases().size()),
                         [](auto const& test) { return cases()[test.param].name; });

/// What must be the same after the settling.
struct Judged {
  std::vector<std::string> packets;
  std::vector<std::string> records;
  std::vector<std::string> flows;
  std::map<std::string, std::uint64_t> statistics;
  std::uint64_t sent = 0;
};

Judged judge(Case const& tested, StampedTraffic const& traffic, std::uint32_t shards, std::string const& device) {
  Judged judged;
  const Result<ChainOutput> output =
      run_chain({.nfs = tested.nfs,
                 .gpu_mask = device == "none" ? 0U : (1U << tested.nfs.size()) - 1,
                 .capture = traffic.capture,
                 .device = device,
                 .spec_extra = fmt::format("  shards: {}\n  tuning: {{unit_packets: 32}}\n", shards)});
  EXPECT_TRUE(output.ok()) << output.status();
  if (!output.ok()) {
    return judged;
  }
  EXPECT_TRUE(output->report.accounted());
  for (std::string const& packet : packets_of(output->capture)) {
    if (tested.has_same_bytes && traffic.judged.contains(packet.substr(0, 8))) {
      judged.packets.push_back(packet);
    }
  }
  // a NAT may give other ports
  static const std::regex kTranslated(R"rx(,"[a-z_]*(from|to)":"[^"]*")rx");
  std::istringstream records(output->records);
  for (std::string line; std::getline(records, line);) {
    if (traffic.positions.contains(std::stoul(line.substr(line.find(':') + 1)))) {
      judged.records.push_back(std::regex_replace(line, kTranslated, ""));
    }
  }
  static const std::regex kJudgedFlow(R"rx("sport":[78]\d\d\d,)rx");
  std::istringstream flows(output->flows);
  for (std::string line; std::getline(flows, line);) {
    if (std::regex_search(line, kJudgedFlow)) {
      judged.flows.push_back(line);
    }
  }
  judged.flows = sorted(std::move(judged.flows));
  for (io::NamedCount const& count : output->report.nfs.front().statistics) {
    if (std::ranges::count(tested.statistics, count.name) > 0) {
      judged.statistics[count.name] = count.count;
    }
  }
  judged.sent = output->report.tx.sent;
  return judged;
}

TEST_P(Stamps, that_were_wrong_change_nothing_later) {
  Case const& tested = cases()[GetParam()];
  const StampedTraffic right = make_traffic(tested.make, false);
  const StampedTraffic wrong = make_traffic(tested.make, true);
  const Judged expected = judge(tested, right, 1, "none");
  EXPECT_GT(expected.sent, kSections.size() * kSettling) << "not all packets are dropped";
  EXPECT_EQ(expected.statistics.size(), tested.statistics.size());
  std::vector<std::string> devices = device_names();
  devices.insert(devices.begin(), "none");
  for (std::string const& device : devices) {
    for (const std::uint32_t shards : {1U, 3U}) {
      SCOPED_TRACE(fmt::format("{} shards, device {}", shards, device));
      const Judged actual = judge(tested, wrong, shards, device);
      if (tested.has_common_limit && shards > 1) {
        EXPECT_GT(actual.packets.size(), expected.packets.size() / 2);
        EXPECT_TRUE(std::ranges::includes(sorted(expected.packets), sorted(actual.packets)));
        continue;
      }
      EXPECT_EQ(actual.packets.size(), expected.packets.size());
      EXPECT_TRUE(actual.packets == expected.packets);
      EXPECT_EQ(actual.records, expected.records);
      EXPECT_EQ(actual.flows, expected.flows);
      EXPECT_EQ(actual.statistics, expected.statistics);
    }
  }
}

}  // namespace
}  // namespace catena::testing
