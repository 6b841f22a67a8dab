// SPDX-License-Identifier: Apache-2.0
// One table of frames whose TCP, UDP and ICMP headers are whole, split over fragments, cut off or a lie, and of what
// everything that decides by ports makes of each: the reading of src/packet, rows of a graph, matches of a shared port,
// the NFs (on the CPU, and by their kernels on every device), NCA_CLASSIFY, record lines.
#include "chain/chain_file.hpp"
#include "chain/graph.hpp"
#include "io/traffic_match.hpp"
#include "nca/testing/session.hpp"
#include "nf/record.hpp"
#include "nf/registry.hpp"
#include "system/chain_runner.hpp"
#include "system/packet_sets.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/oracle.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/frames.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace catena::testing {
namespace {

using packet::testing::ends_after;
using packet::testing::Frame;
using packet::testing::kL3;
using packet::testing::kL4;
using packet::testing::with_fragment;
using packet::testing::with_options;
using packet::testing::with_vlan;

constexpr std::uint16_t kMore = 0x2000;
constexpr std::uint16_t kSourcePort = 4000;
constexpr std::uint16_t kPort = 22;  ///< the one that all rules ask for
constexpr std::uint32_t kServer = 0xCB00710A;

/// TCP to kPort, a SYN with so many words of header, and text.
Frame tcp(unsigned words) {
  Frame frame = packet::testing::make_frame(packet::kProtocolTcp, 0x0A000001, kServer, kSourcePort, kPort, "12345678");
  frame.insert(frame.begin() + kL4 + packet::kTcpMinBytes, words * 4 - packet::kTcpMinBytes, 1);
  frame[kL4 + 12] = static_cast<std::uint8_t>(words << 4);
  frame[kL4 + 13] = 0x02;
  packet::store_be16(&frame[kL3 + 2], static_cast<std::uint16_t>(frame.size() - kL3));
  return frame;
}
Frame udp() {
  return packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001, kServer, kSourcePort, kPort, "12345678");
}
Frame icmp() { return packet::testing::make_echo(0x0A000001, kServer, 7, 1, "12345678"); }
/// What would be ports reads as those of the others.
Frame of_protocol(std::uint8_t protocol) {
  Frame frame = udp();
  frame[kL3 + 9] = protocol;
  return frame;
}

/// With these tags before the EtherType, the outer one first.
Frame with_tags(Frame frame, std::initializer_list<std::uint16_t> types) {
  for (auto type = std::rbegin(types); type != std::rend(types); ++type) {
    frame = with_vlan(std::move(frame), 1);
    packet::store_be16(&frame[12], *type);
  }
  return frame;
}

/// The frame ends after so many bytes of its datagram behind the IPv4 header, and the datagram goes on.
Frame cut_after(Frame frame, std::size_t bytes) {
  frame.resize(kL4 + bytes);
  return frame;
}
/// The first fragment, which so many bytes are in.
Frame first(Frame const& frame, std::size_t bytes) { return with_fragment(ends_after(frame, bytes), kMore); }
/// A fragment from byte 8 * `offset` on; what it has would read as a header.
Frame later(Frame const& frame, unsigned offset, std::uint16_t more = 0) {
  return with_fragment(frame, static_cast<std::uint16_t>(offset | more));
}
Frame with_byte(Frame frame, std::size_t at, std::uint8_t value) {
  frame[at] = value;
  return frame;
}

/// What becomes of one frame.
struct Fates {
  std::string reading;   ///< of the header, and of the ports: see reading_of()
  std::string row;       ///< "met", "not met", or "malformed": of a row, or match, that asks for `dport: 22`
  std::string firewall;  ///< "denied" by the rule over port 22; "allowed" by one without ports, or dropped for a reason
  std::string nids;      ///< protocols of the rules over port 22 that fit; "seen" where none does, "unseen"
  std::string nat;       ///< "translated", "unchanged", or dropped for a reason
  std::string lb;        ///< "balanced", "unchanged", or dropped for a reason
  std::string ipsec;     ///< "protected" by a selector over port 22, or dropped for a reason
  std::string flow;      ///< ports of the monitor's flow, "unseen"
  std::string recorded;  ///< ports of a record line

  bool operator==(Fates const&) const = default;
};

struct Shape {
  const char* name;
  Frame frame;
  Fates expected;
};

constexpr const char* kOpen = "4000 to 22";

// clang-format off
const Fates kTcpWhole{"whole, shown", "met", "denied", "tcp ip", "translated", "balanced", "protected", kOpen, kOpen};
const Fates kUdpWhole{"whole, shown", "met", "denied", "udp ip", "translated", "balanced", "protected", kOpen, kOpen};
/// The first fragment with a whole header: a load balancer would lose the others.
const Fates kTcpFirst{"whole, shown", "met", "denied", "tcp ip", "translated", "fragment", "protected", kOpen, kOpen};
const Fates kUdpFirst{"whole, shown", "met", "denied", "udp ip", "translated", "fragment", "protected", kOpen, kOpen};
/// The first fragment without: where its ports are there, a row over ports alone decides it.
const Fates kSplit{"split, shown", "met", "fragment", "seen", "malformed", "fragment", "fragment", "0 to 0", "none"};
const Fates kHides{"split, hidden", "malformed", "fragment", "seen", "malformed", "fragment", "fragment", "0 to 0", "none"};
/// A fragment that could overwrite the header that the first one has.
const Fates kOverwrites{"split, hidden", "malformed", "fragment", "seen", "fragment", "fragment", "fragment", "0 to 0", "none"};
/// Another fragment after the first.
const Fates kLater{"none, none", "not met", "allowed", "seen", "fragment", "fragment", "fragment", "0 to 0", "none"};
/// No fragment, and no whole header.
const Fates kBroken{"cut, shown", "met", "malformed", "seen", "malformed", "unchanged", "fragment", "0 to 0", "none"};
const Fates kPortless{"cut, hidden", "malformed", "malformed", "seen", "malformed", "unchanged", "fragment", "0 to 0", "none"};
/// The frame ends too early: NFs that need whole datagrams see none.
const Fates kTruncated{"whole, shown", "met", "denied", "unseen", "unchanged", "unchanged", "unsupported", kOpen, kOpen};
const Fates kOptionsOff{"cut, shown", "met", "malformed", "unseen", "unchanged", "unchanged", "unsupported", kOpen, kOpen};
const Fates kOptionsOffFirst{"split, shown", "met", "fragment", "unseen", "unchanged", "unchanged", "unsupported", kOpen, kOpen};
const Fates kCutOff{"cut, shown", "met", "malformed", "unseen", "unchanged", "unchanged", "unsupported", "0 to 0", "none"};
const Fates kAllCutOff{"cut, hidden", "malformed", "malformed", "unseen", "unchanged", "unchanged", "unsupported", "0 to 0", "none"};
/// Type and code stand for the destination port of a flow.
const Fates kEcho{"none, none", "not met", "allowed", "seen", "translated", "unchanged", "no_sa", "0 to 2048", "none"};
const Fates kNoIpv4{"none, none", "not met", "unsupported", "unseen", "unchanged", "unchanged", "unsupported", "unseen", "none"};

std::vector<Shape> const& shapes() {
  static const std::vector<Shape> kShapes{
      {"TCP", tcp(5), kTcpWhole},
      {"TCP with options", tcp(10), kTcpWhole},
      {"UDP", udp(), kUdpWhole},
      {"TCP after IP options", with_options(tcp(10), 10), kTcpWhole},
      {"TCP in a VLAN", with_vlan(tcp(5), 1), kTcpWhole},
      {"UDP in two VLANs", with_vlan(udp(), 2), kUdpWhole},
      {"TCP in three VLANs", with_vlan(tcp(5), 3), kNoIpv4},
      {"TCP after tag 88a8", with_tags(tcp(5), {0x88A8}), kTcpWhole},
      {"TCP after tag 9100", with_tags(tcp(5), {0x9100}), kTcpWhole},
      {"UDP after tag 9200", with_tags(udp(), {0x9200}), kUdpWhole},
      {"TCP after tags 88a8 and 8100", with_tags(tcp(5), {0x88A8, 0x8100}), kTcpWhole},
      {"TCP after tags 9100 and 8100", with_tags(tcp(5), {0x9100, 0x8100}), kTcpWhole},
      {"UDP after tags 9200 and 88a8", with_tags(udp(), {0x9200, 0x88A8}), kUdpWhole},
      {"TCP after tags 8100 and 9100", with_tags(tcp(5), {0x8100, 0x9100}), kTcpWhole},
      {"TCP after two tags 9100 and one 8100", with_tags(tcp(5), {0x9100, 0x9100, 0x8100}), kNoIpv4},
      {"TCP after tag 9300", with_tags(tcp(5), {0x9300}), kNoIpv4},
      {"ICMP", icmp(), kEcho},
      {"GRE", of_protocol(47),
       {"none, none", "not met", "allowed", "seen", "unsupported_protocol", "unchanged", "no_sa", "0 to 0", "none"}},
      {"SCTP", of_protocol(132),
       {"none, none", "not met", "allowed", "seen", "unsupported_protocol", "unchanged", "no_sa", "0 to 0", "none"}},

      {"first fragment, TCP header whole", first(tcp(5), 24), kTcpFirst},
      {"first fragment, TCP header and nothing else", first(tcp(10), 40), kTcpFirst},
      {"first fragment, UDP header whole", first(udp(), 8), kUdpFirst},
      {"first fragment, 39 of 40 bytes of TCP", first(tcp(10), 39), kSplit},
      {"first fragment, 24 of 40 bytes of TCP", first(tcp(10), 24), kSplit},
      {"first fragment, 19 bytes of TCP", first(tcp(5), 19), kSplit},
      {"first fragment, 16 bytes of TCP", first(tcp(5), 16), kSplit},
      {"first fragment, 8 bytes of TCP", first(tcp(5), 8), kSplit},
      {"first fragment, 4 bytes of TCP", first(tcp(5), 4), kSplit},
      {"first fragment, 3 bytes of TCP", first(tcp(5), 3), kHides},
      {"first fragment, nothing of TCP", first(tcp(5), 0), kHides},
      {"first fragment, 4 bytes of UDP", first(udp(), 4), kSplit},
      {"first fragment, 2 bytes of UDP", first(udp(), 2), kHides},
      {"first fragment, data offset below 5", first(with_byte(tcp(5), kL4 + 12, 0x40), 24), kSplit},
      {"first fragment, 16 bytes of TCP, IP options and VLANs", with_vlan(with_options(first(tcp(5), 16), 3), 2), kSplit},
      {"first fragment, 3 bytes of TCP, IP options and VLANs", with_vlan(with_options(first(tcp(5), 3), 3), 2), kHides},
      {"first fragment, 4 bytes of ICMP", first(icmp(), 4),
       {"split, none", "not met", "fragment", "seen", "malformed", "unchanged", "no_sa", "0 to 0", "none"}},
      {"first fragment of GRE", with_fragment(of_protocol(47), kMore),
       {"none, none", "not met", "allowed", "seen", "unsupported_protocol", "unchanged", "no_sa", "0 to 0", "none"}},

      {"TCP fragment at byte 8", later(tcp(5), 1, kMore), kOverwrites},
      {"last TCP fragment at byte 8", later(tcp(5), 1), kOverwrites},
      {"TCP fragment at byte 8 with 4 bytes", ends_after(later(tcp(5), 1), 4), kOverwrites},
      {"TCP fragment at byte 8, IP options and VLANs", with_vlan(with_options(later(tcp(5), 1), 3), 2), kOverwrites},
      {"TCP fragment at byte 16", later(tcp(5), 2), kLater},
      {"TCP fragment at byte 24", later(tcp(5), 3, kMore), kLater},
      {"UDP fragment at byte 8", later(udp(), 1), kLater},
      {"UDP fragment at the last offset", later(udp(), 0x1FFF), kLater},
      {"ICMP fragment at byte 8", later(icmp(), 1),
       {"none, none", "not met", "allowed", "seen", "fragment", "unchanged", "no_sa", "0 to 0", "none"}},

      {"19 bytes of TCP", ends_after(tcp(5), 19), kBroken},
      {"4 bytes of TCP", ends_after(tcp(5), 4), kBroken},
      {"3 bytes of TCP", ends_after(tcp(5), 3), kPortless},
      {"nothing of TCP", ends_after(tcp(5), 0), kPortless},
      {"data offset below 5", with_byte(tcp(5), kL4 + 12, 0x40), kBroken},
      {"data offset beyond the datagram", with_byte(tcp(5), kL4 + 12, 0xF0), kBroken},
      {"4 bytes of UDP", ends_after(udp(), 4), kBroken},
      {"2 bytes of UDP", ends_after(udp(), 2), kPortless},
      {"UDP length beyond the datagram", with_byte(udp(), kL4 + 5, 17), kBroken},
      {"UDP length below its header", with_byte(udp(), kL4 + 5, 7), kBroken},
      {"4 bytes of ICMP", ends_after(icmp(), 4),
       {"none, none", "not met", "allowed", "seen", "malformed", "unchanged", "no_sa", "0 to 0", "none"}},

      {"TCP, the frame ends in the text", cut_after(tcp(10), 42), kTruncated},
      {"TCP, the frame ends after the header", cut_after(tcp(10), 40), kTruncated},
      {"TCP, the frame ends in the options", cut_after(tcp(10), 39), kOptionsOff},
      {"TCP, the frame ends before the options", cut_after(tcp(10), 20), kOptionsOff},
      {"TCP, the frame ends in the options, IP options and VLANs",
       with_vlan(with_options(cut_after(tcp(10), 39), 3), 2), kOptionsOff},
      {"first fragment, the frame ends in the TCP options", with_fragment(cut_after(tcp(10), 30), kMore), kOptionsOffFirst},
      {"TCP, the frame ends after 19 bytes", cut_after(tcp(5), 19), kCutOff},
      {"TCP, the frame ends after 4 bytes", cut_after(tcp(5), 4), kCutOff},
      {"TCP, the frame ends after 3 bytes", cut_after(tcp(5), 3), kAllCutOff},
      {"UDP, the frame ends after the header", cut_after(udp(), 8), kTruncated},
      {"UDP, the frame ends after 4 bytes", cut_after(udp(), 4), kCutOff},
      {"UDP, the frame ends after 2 bytes", cut_after(udp(), 2), kAllCutOff},
  };
  return kShapes;
}
// clang-format on

/// The frames of the table, each from another host and with another identification: no NF takes one for a part of what
/// another one began.
std::vector<Frame> const& frames() {
  static const std::vector<Frame> kFrames = [] {
    std::vector<Frame> all;
    for (Shape const& shape : shapes()) {
      Frame frame = shape.frame;
      const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
      if ((layers.flags & packet::kIpv4) != 0) {
        std::uint8_t* ip = &frame[layers.l3];
        packet::store_be16(ip + 4, static_cast<std::uint16_t>(all.size() + 1));
        packet::store_be32(ip + 12, 0x0A000001U + static_cast<std::uint32_t>(all.size()));
        frame = packet::testing::with_header_checksum(std::move(frame), layers.l3);
      }
      all.push_back(std::move(frame));
    }
    return all;
  }();
  return kFrames;
}

/// Expects of each frame, by its number, what the table says.
void expect_fates(std::string Fates::*column, std::function<std::string(std::size_t)> const& fate_of) {
  for (std::size_t i = 0; i < frames().size(); ++i) {
    EXPECT_EQ(fate_of(i), shapes()[i].expected.*column) << shapes()[i].name;
  }
}

/// A folder with rules, associations and all else that the NFs of this test are configured with, and runs of them.
class HeaderShapes : public ::testing::Test {
 protected:
  HeaderShapes() {
    folder_.write("fw.rules", "deny any any any any 22\nallow any any any any any\n");
    folder_.write("ids.rules", R"(alert tcp any any -> any 22 (msg:"t"; sid:1;)
alert udp any any -> any 22 (msg:"u"; sid:2;)
alert ip any any -> any 22 (msg:"i"; sid:3;)
alert ip any any -> any any (msg:"all"; sid:4;)
)");
    folder_.write("sa.yaml", R"(associations:
  - spi: 4096
    source: 198.51.100.1
    destination: 203.0.113.1
    encryption_key: "000102030405060708090a0b0c0d0e0f"
    salt: "a0a1a2a3"
    authentication_key: "101112131415161718191a1b1c1d1e1f20212223"
    selector: {destination_port: 22}
)");
  }

  /// The NF's record of each packet, empty where there is no line, and what it counted: on the CPU, and the same on
  /// every device. `by_kernel`: each packet that the NF decides is its kernel's work.
  struct Run {
    std::vector<nlohmann::json> records;
    nf::testing::RunResult result;
    std::string reason(std::size_t packet) const { return records[packet].value("reason", ""); }
    bool is_dropped(std::size_t packet) const { return result.packets[packet].verdict == packet::Verdict::kDrop; }
  };
  Run decide(std::string_view type, std::string const& yaml, bool by_kernel = true) {
    Run all;
    std::vector<device::Device*> places{nullptr};
    places.insert(places.end(), nf::testing::devices().begin(), nf::testing::devices().end());
    EXPECT_GT(places.size(), 1U) << "at least PoCL must be there";
    for (device::Device* place : places) {
      SCOPED_TRACE(concat(type, " on ", nf::testing::name_of(place)));
      nf::Descriptor const& descriptor = *nf::builtin_nfs().find(type).value();
      auto made = nf::testing::make_nf(descriptor, yaml, folder_.path());
      EXPECT_TRUE(made.ok()) << made.status();
      auto result = nf::testing::run(descriptor, *std::move(made), frames(), place);
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) {
        return all;
      }
      Run here{std::vector<nlohmann::json>(frames().size(), nlohmann::json::object()), *std::move(result)};
      for (std::string const& line : here.result.records) {
        const nlohmann::json record = nlohmann::json::parse(line);
        here.records[record.at("packet").get<std::size_t>()] = record;
      }
      if (place == nullptr) {
        all = std::move(here);
        continue;
      }
      EXPECT_TRUE(here.result.packets == all.result.packets);
      EXPECT_EQ(here.records, all.records);
      EXPECT_EQ(here.result.drops, all.result.drops);
      EXPECT_EQ(here.result.counters.kernel_faults, 0U);
      EXPECT_GT(here.result.counters.device_packets, 0U);
      if (by_kernel) {
        EXPECT_EQ(here.result.counters.device_packets, all.result.counters.processed);
      }
    }
    return all;
  }

  ScratchFolder folder_;
};

std::string to_string(packet::Ports ports) { return concat(ports.source, " to ", ports.destination); }

TEST_F(HeaderShapes, the_parser) {
  expect_fates(&Fates::reading, [](std::size_t i) -> std::string {
    Frame const& frame = frames()[i];
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    if ((layers.flags & packet::kIpv4) == 0) {
      return "none, none";
    }
    constexpr const char* kHeaders[] = {"none", "whole", "split", "cut"};
    constexpr const char* kPorts[] = {"none", "shown", "hidden"};
    const packet::PortsHeader header = packet::ports_header(layers.flags, frame[layers.l3 + 9U]);
    EXPECT_EQ(header == packet::PortsHeader::kWhole, packet::has_whole_ports(layers.flags));
    const packet::ShownPorts shown = packet::shown_ports(frame.data(), layers);
    if (shown.state == packet::ShownPorts::State::kShown) {
      EXPECT_EQ(to_string(shown.ports), kOpen) << shapes()[i].name;
    }
    return concat(kHeaders[static_cast<std::size_t>(header)], ", ", kPorts[static_cast<std::size_t>(shown.state)]);
  });
}

TEST_F(HeaderShapes, rows_of_a_graph) {
  const Result<chain::ChainConfig> config = chain::parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs: [{name: a, type: firewall}]\n  graph: [{from: rx, match: {dport: 22}, to: drop}, {from: rx, to: a}, "
      "{from: a, to: tx}]\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const Result<chain::NextNodeTable> table = chain::NextNodeTable::create(*config->graph, chain::kRx, {});
  ASSERT_TRUE(table.ok()) << table.status();
  nf::testing::PacketStore store(frames());
  expect_fates(&Fates::row, [&](std::size_t i) -> std::string {
    const std::uint8_t to = table->decide(store.all()[static_cast<std::uint32_t>(i)]).to;
    EXPECT_EQ(table->foresee(store.all()[static_cast<std::uint32_t>(i)]).value().to, to);
    return to == chain::NextNodeTable::kDropped     ? "met"
           : to == chain::NextNodeTable::kMalformed ? "malformed"
           : to == 0                                ? "not met"
                                                    : "unmatched";
  });
}

/// But for the fragments after the first, of which Linux 6.18 reads the payload as ports, and for frames whose ports
/// are not there, which it lets pass.
TEST_F(HeaderShapes, rows_decide_by_ports_what_linux_decides_by_them) {
  nf::testing::write_capture(folder_.path("in.pcap"), frames());
  const nf::testing::CommandResult script =
      nf::testing::run_command(concat("unshare --net python3 -B '", source_path("tests/oracle/nft_ports.py"), "' '",
                                      folder_.path("in.pcap"), "' '", folder_.path("out.json"), "' ", kPort));
  if (script.status == nf::testing::kOracleCannot || script.output.find("unshare failed") != std::string::npos) {
    GTEST_SKIP() << "no network namespace with nftables here: " << script.output;
  }
  ASSERT_EQ(script.status, 0) << script.output;
  const nlohmann::json forwarded = nlohmann::json::parse(folder_.read("out.json"));
  const auto without = forwarded.at("without").get<std::set<std::size_t>>();
  const auto with = forwarded.at("with").get<std::set<std::size_t>>();
  std::size_t compared = 0;
  for (const std::size_t i : without) {
    Fates const& expected = shapes()[i].expected;
    if (expected.row != "malformed" && !(expected == kLater)) {
      EXPECT_EQ(!with.contains(i), expected.row == "met") << shapes()[i].name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 25U);
}

TEST_F(HeaderShapes, matches_of_a_shared_port) {
  const io::TrafficTable table(
      {{.match = {}, .owner = 1}, {.match = {.destination_ports = io::PortRange{kPort, kPort}}, .owner = 0}});
  expect_fates(&Fates::row, [&](std::size_t i) -> std::string {
    const io::TrafficTable::Found found =
        table.owner_of(frames()[i].data(), static_cast<std::uint32_t>(frames()[i].size()));
    EXPECT_NE(found.owner.has_value(), found.is_hidden);
    return found.is_hidden ? "malformed" : *found.owner == 0 ? "met" : "not met";
  });
}

TEST_F(HeaderShapes, the_firewall) {
  const Run run = decide("firewall", "{rules: fw.rules, default: deny}");
  expect_fates(&Fates::firewall, [&](std::size_t i) {
    EXPECT_EQ(run.is_dropped(i), run.records[i].contains("reason"));
    EXPECT_EQ(run.records[i].value("rule", -2), run.reason(i) == "denied" ? 0 : run.is_dropped(i) ? -2 : 1);
    return run.is_dropped(i) ? run.reason(i) : "allowed";
  });
}

TEST_F(HeaderShapes, the_nids) {
  const Run run = decide("nids", "{rules: ids.rules}");
  expect_fates(&Fates::nids, [&](std::size_t i) -> std::string {
    if (!run.records[i].contains("matches")) {
      return "unseen";
    }
    constexpr const char* kProtocols[] = {"tcp", "udp", "ip"};
    std::string fitting;
    for (auto const& match : run.records[i]["matches"]) {
      const auto sid = match.get<std::size_t>();
      fitting += sid > 3 ? "" : concat(fitting.empty() ? "" : " ", kProtocols[sid - 1]);
    }
    return fitting.empty() ? "seen" : fitting;
  });
}

TEST_F(HeaderShapes, the_nat) {
  const Run run = decide("nat", "{inside: [10.0.0.0/8], external: [192.0.2.1]}", false);
  expect_fates(&Fates::nat, [&](std::size_t i) {
    return run.is_dropped(i) ? run.reason(i) : run.records[i].contains("from") ? "translated" : "unchanged";
  });
}

TEST_F(HeaderShapes, the_lb) {
  const std::string backends = "backends: [{name: b, address: 192.0.2.7}]";
  const Run run = decide("lb",
                         concat("services: [{address: 203.0.113.10, port: 22, protocol: tcp, ", backends,
                                "}, {address: 203.0.113.10, port: 22, protocol: udp, ", backends, "}]"),
                         false);
  expect_fates(&Fates::lb, [&](std::size_t i) {
    return run.is_dropped(i) ? run.reason(i) : run.records[i].contains("backend") ? "balanced" : "unchanged";
  });
}

TEST_F(HeaderShapes, ipsec_selectors) {
  const Run run = decide("ipsec", "{direction: encrypt, sa: sa.yaml}", false);
  expect_fates(&Fates::ipsec, [&](std::size_t i) {
    EXPECT_NE(run.is_dropped(i), run.records[i].contains("seq"));
    return run.is_dropped(i) ? run.reason(i) : "protected";
  });
}

TEST_F(HeaderShapes, the_monitor) {
  // one file for all places, removed before each: what a device exports is compared, too
  std::vector<std::string> exports;
  std::vector<device::Device*> places{nullptr};
  places.insert(places.end(), nf::testing::devices().begin(), nf::testing::devices().end());
  for (device::Device* place : places) {
    nf::Descriptor const& descriptor = *nf::builtin_nfs().find("monitor").value();
    std::filesystem::remove(folder_.path("flows.jsonl"));
    auto made = nf::testing::make_nf(descriptor, "{export: [{format: json, file: flows.jsonl}]}", folder_.path());
    ASSERT_TRUE(made.ok()) << made.status();
    const auto result = nf::testing::run(descriptor, *std::move(made), frames(), place);
    ASSERT_TRUE(result.ok()) << result.status();
    exports.push_back(folder_.read("flows.jsonl"));
    EXPECT_EQ(exports.back(), exports.front()) << nf::testing::name_of(place);
  }
  std::map<std::string, std::string> flows;
  std::istringstream lines(exports.front());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json flow = nlohmann::json::parse(line);
    flows[flow["src"].get<std::string>()] = concat(flow["sport"].get<int>(), " to ", flow["dport"].get<int>());
  }
  expect_fates(&Fates::flow, [&](std::size_t i) {
    const auto flow = flows.find(to_string(packet::Address::of_v4(0x0A000001U + static_cast<std::uint32_t>(i))));
    return flow == flows.end() ? "unseen" : flow->second;
  });
}

TEST_F(HeaderShapes, record_lines) {
  nf::testing::PacketStore store(frames());
  expect_fates(&Fates::recorded, [&](std::size_t i) -> std::string {
    const nf::Arrival arrival = nf::arrival_of(store.all()[static_cast<std::uint32_t>(i)]);
    const bool has_ports = (arrival.flags & packet::kPorts) != 0;
    return has_ports ? to_string({arrival.flow.source_port, arrival.flow.destination_port}) : "none";
  });
}

/// As the firewall does, which tells apart why it drops what no rule may decide.
TEST_F(HeaderShapes, nca_classify) {
  nca_rule ports{};
  ports.source_port_last = 0xFFFF;
  ports.destination_port_first = ports.destination_port_last = kPort;
  nca_rule all{};
  all.source_port_last = all.destination_port_last = 0xFFFF;
  const std::vector<nca_rule> rules{ports, all};
  nca_classify_config config{};
  config.size = sizeof config;
  config.rules = rules.data();
  config.rule_count = rules.size();
  for (std::string const& device : nca::testing::device_names()) {
    SCOPED_TRACE(device);
    const nca::testing::Context context = nca::testing::open(device);
    ASSERT_NE(context, nullptr);
    const std::vector<nca_function*> functions{nca::testing::add(*context, NCA_CLASSIFY, &config)};
    const nca::testing::Stream stream = nca::testing::make_stream(*context, nca::testing::small_buffers(functions));
    std::vector<std::string> found(frames().size(), "no rule");
    nca::testing::run(*stream, frames(), [&](nca_results const& results, std::uint64_t first_packet) {
      nca_function_results const& own = *results.functions[0];
      for (std::size_t i = 0; i < own.count; ++i) {
        found[first_packet + own.rules[i].packet] = own.rules[i].rule == 0 ? "denied" : "allowed";
      }
    });
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::string const& firewall = shapes()[i].expected.firewall;
      const bool is_decided = firewall == "denied" || firewall == "allowed";
      EXPECT_EQ(found[i], is_decided ? firewall : "no rule") << shapes()[i].name;
    }
  }
}

/// What whole chains let leave, and count.
class GraphPorts : public ::testing::Test {
 protected:
  /// Names of the shapes that are in a capture as they came.
  static std::vector<std::string> left_by(std::string const& capture) {
    std::vector<std::string> left;
    for (std::string const& packet : packets_of(capture)) {
      const Frame frame(packet.begin() + 16, packet.end());  // without its stamp
      const auto shape = std::ranges::find(frames(), frame) - frames().begin();
      left.emplace_back(shape < std::ssize(frames()) ? shapes()[static_cast<std::size_t>(shape)].name
                                                     : "another frame");
    }
    return sorted(std::move(left));
  }
  static std::map<std::string, std::uint64_t> drops_of(runtime::ClassifierReport const& classifier) {
    std::map<std::string, std::uint64_t> drops;
    for (io::NamedCount const& count : classifier.drops) {
      drops[count.name] = count.count;
    }
    return drops;
  }
};

TEST_F(GraphPorts, what_a_row_over_ports_drops_does_not_leave) {
  const std::string capture = (scratch_folder() / "shapes.pcap").string();
  ASSERT_TRUE(write_capture(capture, frames()).ok());
  std::vector<std::string> expected;
  std::map<std::string, std::uint64_t> drops;
  for (std::size_t i = 0; i < frames().size(); ++i) {
    std::string const& row = shapes()[i].expected.row;
    if (row == "not met") {
      expected.emplace_back(shapes()[i].name);
    } else {
      ++drops[row == "met" ? "dropped_by_row" : "malformed"];
    }
  }
  const Result<ChainOutput> output =
      run_chain({{{"r", "remark", "map: [{from: 46, to: 46}]"}},
                 0,
                 capture,
                 "none",
                 "  graph:\n    - {from: rx, match: {dport: 22}, to: drop}\n    - {from: rx, to: r}\n"
                 "    - {from: r, to: tx}\n"});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(left_by(output->capture), sorted(expected));
  ASSERT_EQ(output->report.classifiers.size(), 1U);
  EXPECT_EQ(drops_of(output->report.classifiers[0]), drops);
  EXPECT_TRUE(output->report.accounted()) << runtime::to_text(output->report);
}

TEST_F(GraphPorts, a_row_behind_a_gpu_reads_the_bytes_that_its_nf_has_made) {
  // whole datagrams: ipsec takes no others
  std::vector<Frame> whole;
  for (std::size_t i = 0; i < frames().size(); ++i) {
    if (shapes()[i].expected.ipsec != "unsupported") {
      whole.push_back(frames()[i]);
    }
  }
  const std::string clear = (scratch_folder() / "clear.pcap").string();
  ASSERT_TRUE(write_capture(clear, whole).ok());
  ScratchFolder folder;
  folder.write("sa.yaml", R"(associations:
  - spi: 4096
    source: 198.51.100.1
    destination: 203.0.113.1
    encryption_key: "000102030405060708090a0b0c0d0e0f"
    salt: "a0a1a2a3"
    authentication_key: "101112131415161718191a1b1c1d1e1f20212223"
)");
  const std::string sa = folder.path() + "/sa.yaml";
  const Result<ChainOutput> secret =
      run_chain({{{"vpn", "ipsec", concat("direction: encrypt, sa: ", sa)}}, 0, clear, "none", ""});
  ASSERT_TRUE(secret.ok()) << secret.status();
  ASSERT_EQ(secret->report.tx.sent, whole.size());
  const std::string esp = (scratch_folder() / "esp.pcap").string();
  std::ofstream(esp, std::ios::binary) << secret->capture;

  const std::vector<NfText> nfs{{"vpn", "ipsec", concat("direction: decrypt, sa: ", sa)},
                                {"r", "remark", "map: [{from: 46, to: 46}]"}};
  const std::string rows =
      "  graph:\n    - {from: rx, to: vpn}\n    - {from: vpn, match: {dport: 22}, to: drop}\n"
      "    - {from: vpn, to: r}\n    - {from: r, to: tx}\n";
  const Result<ChainOutput> expected = run_chain({nfs, 0, esp, "none", rows});
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(expected->report.classifiers.size(), 1U);
  EXPECT_GT(drops_of(expected->report.classifiers[0])["dropped_by_row"], 10U);
  EXPECT_GT(drops_of(expected->report.classifiers[0])["malformed"], 5U);
  for (std::string const& device : device_names()) {
    for (const std::uint32_t mask : {0b01U, 0b11U}) {
      const Result<ChainOutput> actual = run_chain({nfs, mask, esp, device, rows});
      ASSERT_TRUE(actual.ok()) << actual.status();
      EXPECT_EQ(left_by(actual->capture), left_by(expected->capture)) << device << ", " << mask;
      EXPECT_EQ(drops_of(actual->report.classifiers[0]), drops_of(expected->report.classifiers[0])) << device << mask;
    }
  }
}

}  // namespace
}  // namespace catena::testing
