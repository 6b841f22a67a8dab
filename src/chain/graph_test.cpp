// SPDX-License-Identifier: Apache-2.0
#include "chain/graph.hpp"

#include "chain/chain_file.hpp"
#include "chain/graph_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/text_file.hpp>

#include <string>
#include <vector>

namespace catena::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A chain of NFs a, b, c, d, in which `graph` is what stands behind "graph:" from line 12 on.
Result<ChainConfig> parse_graph(std::string const& graph, std::string const& more = "") {
  return parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n",
             "  tx: null\n  nfs:\n    - {name: a, type: firewall}\n    - {name: b, type: nids, on: gpu}\n",
             "    - {name: c, type: router}\n  graph:\n", graph, more),
      "c.yaml");
}

std::string error_of(std::string const& graph, std::string const& more = "") {
  return std::string(parse_graph(graph, more).status().message());
}

constexpr const char* kRow =
    "    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, to: c}\n"
    "    - {from: c, to: tx}\n";

std::vector<std::string> names_of(ChainConfig const& chain) {
  std::vector<std::string> names;
  for (NfConfig const& nf : chain.nfs) {
    names.push_back(nf.name);
  }
  return names;
}

TEST(ChainGraph, is_read_row_by_row) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, match: {dst: 10.1.0.0/16, rx_port: 1}, to: a}\n"
      "    - {from: rx, to: c}\n"
      "    - {from: a, output: alert, match: {protocol: udp, verdict: alert}, to: {mirror: b}}\n"
      "    - {from: [a, c], match: {tx_port: 3}, to: drop}\n"
      "    - {from: [a, c], to: tx}\n",
      "  unmatched: tx\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::vector<NextNodeRow> const& rows = chain->graph->rows;
  ASSERT_EQ(rows.size(), 8U) << "one for each from, and one for what is left of b";
  EXPECT_EQ(names_of(*chain), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(rows[0].from, kRx);
  EXPECT_EQ(rows[0].to, 0U);
  EXPECT_EQ(to_string(rows[0].match), "dst 10.1.0.0/16, rx_port 1");
  EXPECT_EQ(rows[0].position, "c.yaml:12:7");
  EXPECT_TRUE(rows[2].is_mirror);
  EXPECT_EQ(rows[2].to, 1U);
  EXPECT_EQ(to_string(rows[2].match), "protocol 17, verdict alert, output alert");
  EXPECT_EQ(rows[3].to, kDrop);
  EXPECT_EQ(rows[4].from, 2U);
  EXPECT_EQ(to_string(rows[4].match), "tx_port 3");
  EXPECT_EQ(rows[7].from, 1U);
  EXPECT_EQ(rows[7].to, kTx);
  EXPECT_TRUE(rows[7].is_of_rest);
  EXPECT_EQ(rows[7].position, "c.yaml:17:14");
}

TEST(ChainGraph, puts_nfs_in_an_order_in_which_packets_meet_them) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, to: c}\n    - {from: c, match: {vlan: 7}, to: a}\n    - {from: c, to: b}\n"
      "    - {from: b, to: a}\n    - {from: a, to: tx}\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(names_of(*chain), (std::vector<std::string>{"c", "b", "a"}));
  EXPECT_THAT(edges_of(*chain->graph, 3),
              ElementsAre(plan::PlanEdge{kRx, 0}, plan::PlanEdge{0, 2}, plan::PlanEdge{0, 1}, plan::PlanEdge{1, 2},
                          plan::PlanEdge{2, kTx}));
  EXPECT_TRUE(is_in_a_row(*chain->graph, kRx, 0));
  EXPECT_FALSE(is_in_a_row(*chain->graph, 1, 2)) << "packets come there from c, too";
}

TEST(ChainGraph, keeps_the_order_of_the_file_where_packets_leave_it_open) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, match: {vlan: 7}, to: b}\n    - {from: rx, to: a}\n    - {from: [a, b], to: c}\n"
      "    - {from: c, to: tx}\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(names_of(*chain), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ChainGraph, a_list_is_a_chain_without_one) {
  const Result<ChainConfig> chain = parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs: [{name: tx, type: firewall}]\n",
      "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_FALSE(chain->graph.has_value());
}

TEST(ChainGraph, says_which_way_packets_would_go_round) {
  EXPECT_EQ(
      error_of(
          "    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, match: {vlan: 3}, to: c}\n"
          "    - {from: b, to: tx}\n    - {from: c, match: {vlan: 9}, to: {mirror: b}}\n    - {from: c, to: tx}\n"),
      "c.yaml:16:7: packets would go round: b -> c -> b; an NF may not receive its own packets again");
  EXPECT_THAT(
      error_of("    - {from: rx, to: a}\n    - {from: a, to: a}\n    - {from: b, to: c}\n    - {from: c, to: tx}\n"),
      HasSubstr("packets would go round: a -> a;"));
}

TEST(ChainGraph, unmatched_is_a_way_as_others) {
  EXPECT_EQ(error_of("    - {from: rx, to: a}\n    - {from: a, match: {vlan: 3}, to: b}\n    - {from: b, to: c}\n"
                     "    - {from: c, to: tx}\n",
                     "  unmatched: a\n"),
            "c.yaml:16:14: packets would go round: a -> a; an NF may not receive its own packets again");
  EXPECT_THAT(error_of("    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, match: {vlan: 3}, to: c}\n"
                       "    - {from: c, to: tx}\n",
                       "  unmatched: a\n"),
              HasSubstr("c.yaml:16:14: packets would go round: a -> b -> a;"));
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, match: {vlan: 1}, to: b}\n    - {from: rx, to: c}\n    - {from: b, match: {vlan: 2}, to: tx}\n"
      "    - {from: [a, c], to: tx}\n",
      "  unmatched: a\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(names_of(*chain), (std::vector<std::string>{"b", "a", "c"})) << "b sends to a what meets no row";
}

TEST(ChainGraph, is_refused_at_the_place_that_is_wrong) {
  struct Case {
    const char* graph;
    const char* more;
    const char* error;
  };
  for (Case const& test : std::vector<Case>{
           {"    - {from: rx, to: d}\n", "", "c.yaml:12:22: 'to' is 'd'; write the name of an NF, or tx, or drop"},
           {"    - {from: xr, to: a}\n", "", "did you mean 'rx'?"},
           {"    - {from: tx, to: a}\n", "", "c.yaml:12:14: 'from' is 'tx'; write the name of an NF, or rx"},
           {"    - {from: rx, to: rx}\n", "", "'to' is 'rx'; write the name of an NF, or tx, or drop"},
           {"    - {from: rx, to: {mirror: drop}}\n", "", "'mirror' is 'drop'; write the name of an NF, or tx"},
           {"    - {from: rx, to: {miror: a}}\n", "", "unknown key 'miror'; did you mean 'mirror'?"},
           {"    - {from: rx}\n", "", "c.yaml:12:7: missing key 'to'"},
           {"    - {to: a}\n", "", "c.yaml:12:7: missing key 'from'"},
           {"    - {from: rx, to: a, match: {}}\n", "", "'match' has no condition; leave it out for all packets"},
           {"    - {from: rx, to: a, match: {dst: 10.1.2.0/16}}\n", "", "write 10.1.0.0/16"},
           {"    - {from: rx, to: a, match: {protocol: icmp, dport: 5}}\n", "", "only tcp and udp have ports"},
           {"    - {from: rx, output: alert, to: a}\n", "", "'output' is for NFs, and rx is not an NF"},
           {"    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: [b, c], to: tx}\n", "",
            "c.yaml:10:23: no packet comes to NF 'c'; write a row of 'graph' with `to: c`, or leave the NF out"},
           {"    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, to: c}\n    - {from: rx, to: c}\n"
            "    - {from: c, to: tx}\n",
            "", "c.yaml:15:7: no packet reaches this row: the row at line 12 takes all its packets"},
           {"    - {from: rx, match: {dst: 10.0.0.0/8}, to: a}\n    - {from: rx, match: {dst: 10.1.0.0/16}, to: b}\n"
            "    - {from: rx, to: c}\n    - {from: [a, b, c], to: tx}\n",
            "", "c.yaml:13:7: no packet reaches this row: the row at line 12 takes all"},
           {"    - {from: rx, to: {mirror: b}}\n    - {from: rx, match: {vlan: 2}, to: {mirror: b}}\n"
            "    - {from: rx, to: a}\n    - {from: a, to: c}\n    - {from: [b, c], to: tx}\n",
            "", "c.yaml:13:7: no packet reaches this row: the row at line 12 copies them to the same NF or tx already"},
           {"    - {from: rx, match: {vlan: 2}, to: a}\n    - {from: a, to: b}\n    - {from: b, to: c}\n"
            "    - {from: c, to: tx}\n",
            "", "c.yaml:12:5: packets may leave rx without a matching row of 'graph'; write `{from: rx, to: ...}`"},
           {"    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, to: c}\n", "",
            "c.yaml:10:23: packets may leave c without a matching row of 'graph'"},
           {kRow, "  unmatched: nowhere\n", "'unmatched' is 'nowhere'; write the name of an NF, or tx, or drop"},
       }) {
    EXPECT_THAT(error_of(test.graph, test.more), HasSubstr(test.error)) << test.graph;
  }
  EXPECT_THAT(parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n"
                          "  tx: null\n  nfs: [{name: tx, type: firewall}]\n  graph: [{from: rx, to: tx}]\n",
                          "c.yaml")
                  .status()
                  .message(),
              HasSubstr("an NF is named 'tx', which means something else in a graph"));
  EXPECT_THAT(parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n"
                          "  tx: null\n  nfs: []\n  unmatched: drop\n",
                          "c.yaml")
                  .status()
                  .message(),
              HasSubstr("c.yaml:8:14: 'unmatched' goes with `graph`"));
}

TEST(ChainGraph, nfs_of_one_process_are_in_a_row) {
  const auto chain_with = [](std::string const& rows) {
    return parse_chain(
        concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
               "  nfs:\n    - {name: a, type: firewall, isolation: {group: g}}\n"
               "    - {name: b, type: router, isolation: {group: g}}\n  graph:\n",
               rows),
        "c.yaml");
  };
  EXPECT_TRUE(chain_with("    - {from: rx, to: a}\n    - {from: a, to: b}\n    - {from: b, to: tx}\n").ok());
  for (const char* rows :
       {"    - {from: rx, match: {vlan: 1}, to: b}\n    - {from: rx, to: a}\n    - {from: a, to: b}\n"
        "    - {from: b, to: tx}\n",
        "    - {from: rx, to: a}\n    - {from: a, match: {vlan: 1}, to: tx}\n    - {from: a, to: b}\n"
        "    - {from: b, to: tx}\n"}) {
    EXPECT_THAT(chain_with(rows).status().message(), HasSubstr("in a graph all packets of one must go to the other"))
        << rows;
  }
}

TEST(ChainGraph, reads_of_packets_what_its_rows_ask_for) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, to: a}\n    - {from: a, match: {dst: 10.0.0.0/8, dport: 80}, to: b}\n    - {from: a, to: c}\n"
      "    - {from: b, to: {mirror: c}}\n    - {from: [b, c], to: tx}\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(reads_of(*chain->graph, 0), packet::fields(packet::kIpv4Dst, packet::kL4Dport, packet::kMetaLayers,
                                                       packet::kIpv4Protocol, packet::kIpv4Fragment, packet::kPayload))
      << "ports of a header that is not whole are payload";
  EXPECT_EQ(reads_of(*chain->graph, 1), packet::kAllFields) << "who copies reads everything";
  EXPECT_EQ(reads_of(*chain->graph, 2), packet::kNoFields);
}

constexpr nf::PacketOutput kOwn[] = {{"odd", "a test"}};

NextNodeTable table_of(std::string const& rows, std::size_t from, std::string const& more = "  unmatched: drop\n") {
  Result<ChainConfig> chain = parse_graph(rows, more);
  EXPECT_TRUE(chain.ok()) << chain.status();
  Result<NextNodeTable> table =
      NextNodeTable::create(*chain->graph, from, from == kRx ? std::span<const nf::PacketOutput>() : kOwn);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

TEST(NextNodeTable, takes_the_first_row_that_a_packet_meets) {
  const NextNodeTable table = table_of(
      "    - {from: rx, match: {protocol: udp}, to: {mirror: c}}\n"
      "    - {from: rx, match: {dst: 10.1.0.0/16}, to: a}\n"
      "    - {from: rx, match: {dport: 53}, to: b}\n"
      "    - {from: rx, match: {src: 10.9.0.0/16}, to: drop}\n"
      "    - {from: rx, match: {protocol: tcp}, to: {mirror: tx}}\n",
      kRx);
  ASSERT_THAT(table.targets(), ElementsAre(2, 0, 1, kTx)) << "c, a, b and tx";
  EXPECT_EQ(table.mirrors(), 0b1001U);
  EXPECT_FALSE(table.is_direct());
  const auto decide = [&table](std::uint8_t protocol, const char* source, const char* destination, std::uint16_t port) {
    const auto address = [](const char* text) {
      packet::Ipv4Prefix prefix;
      nf::TextCursor cursor(text, "");
      EXPECT_TRUE(cursor.next_line() && cursor.prefix(prefix));
      return prefix.address;
    };
    const std::vector<packet::testing::Frame> frames{
        packet::testing::make_frame(protocol, address(source), address(destination), 1000, port, "text")};
    nf::testing::PacketStore store(frames);
    const NextNodeTable::Decision decision = table.decide(store.all()[0]);
    return std::pair<int, std::uint64_t>(decision.to, decision.mirrors);
  };
  constexpr std::uint8_t kUdp = packet::kProtocolUdp;
  constexpr std::uint8_t kTcp = packet::kProtocolTcp;
  EXPECT_EQ(decide(kUdp, "10.0.0.1", "10.1.2.3", 53), std::pair(1, std::uint64_t{1})) << "a, and a copy to c";
  EXPECT_EQ(decide(kTcp, "10.0.0.1", "10.2.2.3", 53), std::pair(2, std::uint64_t{0})) << "the copy to tx is behind";
  EXPECT_EQ(decide(kTcp, "10.9.0.1", "10.2.2.3", 80), std::pair(int{NextNodeTable::kDropped}, std::uint64_t{0}));
  EXPECT_EQ(decide(kTcp, "10.8.0.1", "10.2.2.3", 80), std::pair(int{NextNodeTable::kUnmatched}, std::uint64_t{8}));
}

TEST(NextNodeTable, drops_at_the_first_row_that_asks_for_ports_what_hides_them) {
  const NextNodeTable table = table_of(
      "    - {from: rx, match: {src: 10.1.0.0/16}, to: a}\n"
      "    - {from: rx, match: {protocol: udp, dport: 22}, to: drop}\n"
      "    - {from: rx, match: {src: 10.2.0.0/16}, to: {mirror: b}}\n"
      "    - {from: rx, match: {src: 10.0.0.0/8, sport: 1000-2000}, to: {mirror: c}}\n"
      "    - {from: rx, to: tx}\n",
      kRx);
  ASSERT_THAT(table.targets(), ElementsAre(0, 1, 2, kTx)) << "a, b, c and tx";
  const auto decide = [&table](std::uint32_t source, std::uint16_t fragment, std::size_t bytes) {
    packet::testing::Frame frame = packet::testing::make_frame(packet::kProtocolTcp, source, 1, 1000, 22, "text");
    frame.resize(34 + bytes);
    packet::store_be16(&frame[16], static_cast<std::uint16_t>(20 + bytes));
    packet::store_be16(&frame[20], fragment);
    const std::vector<packet::testing::Frame> frames{frame};
    nf::testing::PacketStore store(frames);
    const NextNodeTable::Decision decision = table.decide(store.all()[0]);
    return std::pair<int, std::uint64_t>(decision.to, decision.mirrors);
  };
  constexpr std::uint16_t kMore = 0x2000;
  constexpr int kTxTarget = 3;
  EXPECT_EQ(decide(0x0A030001, kMore, 8), std::pair(kTxTarget, std::uint64_t{0b100})) << "a mirror, by four bytes";
  EXPECT_EQ(decide(0x0A010001, kMore, 3), std::pair(0, std::uint64_t{0})) << "no row before asks";
  EXPECT_EQ(decide(0x0A030001, kMore, 3), std::pair(int{NextNodeTable::kMalformed}, std::uint64_t{0}));
  EXPECT_EQ(decide(0x0A020001, 1, 20), std::pair(int{NextNodeTable::kMalformed}, std::uint64_t{0b010}))
      << "a copy was made before";
  EXPECT_EQ(decide(0x0A020001, 2, 20), std::pair(kTxTarget, std::uint64_t{0b010})) << "it has no ports";
  EXPECT_EQ(decide(0x0B000001, 1, 20), std::pair(kTxTarget, std::uint64_t{0})) << "no row asks for its ports";
}

TEST(NextNodeTable, tells_outputs_of_its_nf_from_those_of_others) {
  const NextNodeTable table = table_of(
      "    - {from: rx, to: a}\n    - {from: a, to: b}\n"
      "    - {from: b, output: odd, to: c}\n    - {from: b, output: alert, to: drop}\n"
      "    - {from: b, match: {verdict: alert}, to: tx}\n    - {from: c, to: tx}\n",
      1, "  unmatched: c\n");
  const std::vector<packet::testing::Frame> frames{
      packet::testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "text")};
  nf::testing::PacketStore store(frames);
  const packet::Packet packet = store.all()[0];
  const auto target = [&] { return table.decide(packet).to; };
  EXPECT_EQ(table.targets()[target()], 2U) << "no row: unmatched";
  packet.set_verdict(packet::Verdict::kAlert);
  packet.set_output(0, nf::kAlertOutput);
  EXPECT_EQ(table.targets()[target()], kTx) << "an NF before raised it";
  packet.set_output(1, nf::kAlertOutput);
  EXPECT_EQ(target(), NextNodeTable::kDropped);
  packet.set_output(1, nf::kOwnOutputs);
  EXPECT_EQ(table.targets()[target()], 2U);
}

TEST(NextNodeTable, refuses_an_output_that_the_nf_does_not_have) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, to: a}\n    - {from: a, output: even, to: b}\n    - {from: [a, b], to: c}\n"
      "    - {from: c, to: tx}\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(NextNodeTable::create(*chain->graph, 0, kOwn).status().message(),
            "c.yaml:13:7: the NF has no output 'even'; it has pass, alert, odd");
}

TEST(NextNodeTable, is_direct_where_all_packets_go_one_way) {
  EXPECT_TRUE(table_of(kRow, 0).is_direct());
  EXPECT_FALSE(
      table_of("    - {from: rx, to: a}\n    - {from: a, match: {vlan: 3}, to: b}\n    - {from: a, to: c}\n", 0)
          .is_direct());
  EXPECT_FALSE(
      table_of("    - {from: rx, to: a}\n    - {from: a, to: {mirror: b}}\n    - {from: a, to: c}\n", 0).is_direct());
}

TEST(ChainGraph, is_drawn) {
  const Result<ChainConfig> chain = parse_graph(
      "    - {from: rx, match: {dst: 10.1.0.0/16}, to: a}\n    - {from: rx, to: b}\n"
      "    - {from: a, output: alert, to: {mirror: c}}\n    - {from: [a, b], to: tx}\n",
      "  unmatched: drop\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(draw(*chain, GraphFormat::kText),
            "rx\n"
            "  dst 10.1.0.0/16                          -> a\n"
            "  all                                      -> b\n"
            "a  (firewall on cpu)\n"
            "  output alert                             => copy to c\n"
            "  all                                      -> tx\n"
            "b  (nids on gpu)\n"
            "  all                                      -> tx\n"
            "c  (router on cpu)\n"
            "  no row                                   -> drop\n");
  EXPECT_THAT(
      draw(*chain, GraphFormat::kMermaid),
      AllOf(HasSubstr("  rx -->|\"dst 10.1.0.0/16\"| nf0\n"), HasSubstr("  nf0 -.->|\"copy: output alert\"| nf2\n"),
            HasSubstr("  nf0[\"a<br>firewall on cpu\"]\n"), HasSubstr("  nf2 -->|\"no row\"| dropped\n")));
  EXPECT_THAT(draw(*chain, GraphFormat::kDot),
              AllOf(HasSubstr("  rx -> nf0 [label=\"dst 10.1.0.0/16\"];\n"),
                    HasSubstr("  nf0 -> nf2 [label=\"copy: output alert\", style=dashed];\n")));
}

}  // namespace
}  // namespace catena::chain
