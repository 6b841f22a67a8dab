// SPDX-License-Identifier: Apache-2.0
// Chains that branch: the same packets come out, with the same lines, for every placement, device, way to synchronize,
// number of workers and of shards. Behind branches there is no order of all packets, only that of each way; so packets
// and lines are compared sorted, and NFs whose decisions depend on the order of packets of several flows stand where
// all packets come on one way.
#include "system/packet_sets.hpp"
#include "system/random_graphs.hpp"
#include "system/same_bytes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace catena::testing {
namespace {

void expect_same_set(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
  EXPECT_TRUE(sorted(packets_of(actual.capture)) == sorted(packets_of(expected.capture)))
      << what << ": other packets came out";
  EXPECT_EQ(first_difference(sorted_lines(actual.records), sorted_lines(expected.records)), "") << what;
  EXPECT_EQ(first_difference(sorted_lines(actual.flows), sorted_lines(expected.flows)), "") << what;
  EXPECT_TRUE(actual.report.accounted()) << what << "\n" << to_text(actual.report);
  EXPECT_EQ(actual.report.rx.slots_in_use, 0U) << what << ": slots leaked";
  EXPECT_EQ(actual.report.tx.sent, expected.report.tx.sent) << what;
  ASSERT_EQ(actual.report.classifiers.size(), expected.report.classifiers.size()) << what;
  for (std::size_t i = 0; i < actual.report.classifiers.size(); ++i) {
    runtime::ClassifierReport const& classifier = actual.report.classifiers[i];
    runtime::ClassifierReport const& wanted = expected.report.classifiers[i];
    const auto text = [](runtime::ClassifierReport const& of) {
      std::string counted = of.from + ":";
      for (auto const* counts : {&of.to, &of.mirrored, &of.drops}) {
        for (io::NamedCount const& count : *counts) {
          counted += fmt::format(" {} {}", count.name, count.count);
        }
        counted += ";";
      }
      return counted;
    };
    EXPECT_EQ(text(classifier), text(wanted)) << what;
  }
}

class SameBytesOfGraph : public ::testing::TestWithParam<unsigned> {};

TEST_P(SameBytesOfGraph, for_placements_devices_modes_workers_and_shards) {
  RandomGraphs graphs(GetParam());
  const GraphText graph = graphs.next();
  std::string const& capture = clear_traffic()[GetParam() % 2].capture;
  const auto run = [&](std::uint32_t mask, std::string const& device, std::uint32_t workers, std::string const& extra,
                       chain::SyncOptions const& sync = {}) {
    ChainRun chain_run{graph.nfs, mask, capture, device, extra + graph.rows, workers, sync};
    Result<ChainOutput> output = run_chain(chain_run);
    EXPECT_TRUE(output.ok()) << output.status() << "\n" << chain_text(chain_run, "out.pcap");
    return output.ok() ? *std::move(output) : ChainOutput{};
  };
  const ChainOutput expected = run(0, "none", 1, "");
  SCOPED_TRACE(chain_text({graph.nfs, 0, capture, "none", graph.rows}, "out.pcap"));
  ASSERT_GT(expected.report.rx.seen, 1000U);
  ASSERT_TRUE(expected.report.accounted()) << to_text(expected.report);
  expect_same_set(run(0, "none", 4, ""), expected, "4 workers");
  // less than what its copies and parts want at once waits, and does not stand still
  expect_same_set(run(0, "none", 2, "  tuning: {pool_slots: 4096, unit_packets: 64}\n"), expected, "a small pool");
  expect_same_set(run(0, "none", 2, "  flow: {qt: 2}\n  tuning: {pool_slots: 65536}\n"), expected, "back-pressure");
  if (graph.is_by_packet) {
    const ChainOutput divided = run(0, "none", 2, "  shards: 3\n");
    expect_same_set(divided, expected, "3 shards");
    EXPECT_EQ(divided.report.work.shards.size(), 3U);
  }
  const std::uint32_t all = (1U << graph.nfs.size()) - 1;
  for (std::string const& device : device_names()) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      const std::uint32_t mask = i < 2 ? all : 1 + graphs.below(all);
      SyncCase const& sync = sync_cases()[(GetParam() + i) % sync_cases().size()];
      const std::uint32_t unit_packets = std::array{256U, 16U, 64U}[i % 3];
      const std::string what = fmt::format("{:b} on {}, {}, units of {}", mask, device, sync.name, unit_packets);
      // small rings, in which there is something to wait for
      const char* const tuning = i % 2 == 0 ? "units_per_launch: 4" : "pool_slots: 65536, units_per_launch: 2";
      const ChainOutput actual = run(
          mask, device, 1 + i % 2,
          fmt::format("  tuning: {{unit_packets: {}, {}}}\n{}", unit_packets, tuning, i % 2 == 0 ? "" : "  flow: {}\n"),
          sync.options);
      expect_same_set(actual, expected, what);
      expect_placed(actual, mask, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, SameBytesOfGraph, ::testing::Range(0U, 12U),
                         [](auto const& test) { return std::to_string(test.param); });

/// A graph with such an NF has one shard, whose instance has all packets, ports and associations.
TEST(Graph, an_nf_with_shards_of_its_own_decides_the_same_whatever_their_number) {
  constexpr const char* kRows =
      "  graph:\n    - {from: rx, match: {protocol: udp}, to: fw}\n    - {from: [rx, fw], to: nf}\n"
      "    - {from: nf, to: tx}\n";
  std::string const& capture = clear_traffic()[0].capture;
  for (NfText const& nf :
       std::vector<NfText>{{"nf", "nat", "inside: 10.0.0.0/8, external: 203.0.113.1, ports: 2000-2999"},
                           {"nf", "lb", lb_config_for(capture)},
                           {"nf", "ipsec", fmt::format("direction: encrypt, sa: {}", data_file("chain/sa-all.yaml"))},
                           {"nf", "monitor", fmt::format("export: [{{format: json, file: {}}}]", kFlowsFile)}}) {
    SCOPED_TRACE(nf.type);
    const std::vector<NfText> nfs{
        {"fw", "firewall", fmt::format("rules: {}, default: allow", data_file("chain/fw.rules"))}, nf};
    const Result<ChainOutput> one = run_chain({nfs, 0, capture, "none", kRows, 1});
    ASSERT_TRUE(one.ok()) << one.status();
    const Result<ChainOutput> three = run_chain({nfs, 0, capture, "none", concat("  shards: 3\n", kRows), 1});
    ASSERT_TRUE(three.ok()) << three.status();
    EXPECT_EQ(three->flows.empty(), nf.type != "monitor");
    expect_same_set(*three, *one, nf.type);
  }
}

/// What libpcap's filter `expression` says of each frame of a capture, behind VLAN tags, too.
std::vector<bool> met_by_filter(std::string const& capture, std::string const& expression) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(capture.c_str(), error.data()),
                                                            pcap_close);
  EXPECT_NE(file, nullptr) << error.data();
  bpf_program program{};
  const std::string behind_tags = fmt::format("({0}) or (vlan and (({0}) or (vlan and ({0}))))", expression);
  EXPECT_EQ(pcap_compile(file.get(), &program, behind_tags.c_str(), 1, PCAP_NETMASK_UNKNOWN), 0)
      << pcap_geterr(file.get());
  std::vector<bool> met;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(file.get(), &header, &bytes) == 1) {
    met.push_back(pcap_offline_filter(&program, header, bytes) != 0);
  }
  pcap_freecode(&program);
  return met;
}

TEST(NextNodeTable, takes_what_the_filters_of_libpcap_take) {
  struct Match {
    const char* ours;
    const char* filter;
  };
  const std::vector<Match> matches{
      {"dst: 10.0.0.0/24, protocol: udp", "ip and dst net 10.0.0.0/24 and udp"},
      {"sport: 1024-40000, src: 10.0.0.0/8", "ip and src net 10.0.0.0/8 and src portrange 1024-40000"},
      {"dport: 80", "ip and dst port 80 and not sctp"},
      {"protocol: icmp", "ip and icmp"},
      {"protocol: 50", "ip proto 50"},
      {"dst: 0.0.0.0/1", "ip and dst net 0.0.0.0/1"},
      {"protocol: tcp", "ip and tcp"},
  };
  for (std::size_t traffic = 0; traffic < 2; ++traffic) {
    std::string const& capture = clear_traffic()[traffic].capture;
    std::vector<NfText> nfs;
    std::string rows = "  graph:\n";
    for (std::size_t i = 0; i < matches.size(); ++i) {
      nfs.push_back({fmt::format("f{}", i), "firewall", "rules: fw.rules, default: allow"});
      rows += fmt::format("    - {{from: rx, match: {{{}}}, to: f{}}}\n    - {{from: f{}, to: tx}}\n", matches[i].ours,
                          i, i);
    }
    rows += "  unmatched: drop\n";
    const Result<ChainOutput> output = run_chain({nfs, 0, capture, "none", rows});
    ASSERT_TRUE(output.ok()) << output.status();
    std::map<std::string, std::uint64_t> expected;
    std::vector<bool> is_taken(output->report.rx.seen);
    for (std::size_t i = 0; i < matches.size(); ++i) {
      const std::vector<bool> met = met_by_filter(capture, matches[i].filter);
      ASSERT_EQ(met.size(), is_taken.size());
      for (std::size_t frame = 0; frame < met.size(); ++frame) {
        if (met[frame] && !is_taken[frame]) {
          is_taken[frame] = true;
          ++expected[nfs[i].name];
        }
      }
    }
    std::map<std::string, std::uint64_t> actual;
    for (io::NamedCount const& count : output->report.classifiers.at(0).to) {
      actual[count.name] = count.count;
    }
    EXPECT_EQ(actual, expected) << clear_traffic()[traffic].name;
    EXPECT_GE(actual.size(), 3U) << "there is something to see";
  }
}

/// How many packets went from NF `from` to `to`.
std::uint64_t sent_to(ChainOutput const& output, std::string const& from, std::string const& to) {
  for (runtime::ClassifierReport const& classifier : output.report.classifiers) {
    for (io::NamedCount const& count : classifier.to) {
      if (classifier.from == from && count.name == to) {
        return count.count;
      }
    }
  }
  return 0;
}

TEST(Graph, knows_by_which_output_packets_leave_an_nf) {
  const std::vector<NfText> nfs{kDecrypt, kNids, kFirewall};
  const std::string rows =
      "  graph:\n    - {from: rx, to: vpn}\n    - {from: vpn, output: protected, to: ids}\n"
      "    - {from: vpn, to: fw}\n    - {from: [ids, fw], to: tx}\n";
  for (const std::uint32_t mask : {0b000U, 0b001U, 0b111U}) {
    const std::string device = mask == 0 ? "none" : device_names().front();
    const Result<ChainOutput> secret = run_chain({nfs, mask, esp_traffic().front().capture, device, rows});
    ASSERT_TRUE(secret.ok()) << secret.status();
    std::uint64_t decrypted = 0;
    std::istringstream lines(secret->records);
    for (std::string line; std::getline(lines, line);) {
      decrypted += line.find("\"nf\":\"vpn\",\"verdict\":\"pass\",\"spi\"") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(decrypted, 100U);
    EXPECT_EQ(sent_to(*secret, "vpn", "ids"), decrypted);
    const Result<ChainOutput> clear = run_chain({nfs, mask, clear_traffic()[2].capture, device, rows});
    ASSERT_TRUE(clear.ok()) << clear.status();
    EXPECT_EQ(sent_to(*clear, "vpn", "ids"), 0U);
    EXPECT_EQ(sent_to(*clear, "vpn", "fw"), clear->report.nfs[0].packets.passed);
  }
}

TEST(Graph, an_nf_without_such_an_output_is_refused_at_its_row) {
  const Result<ChainOutput> output = run_chain({{kFirewall},
                                                0,
                                                clear_traffic()[2].capture,
                                                "none",
                                                "  graph:\n    - {from: rx, to: fw}\n    - {from: fw, output: "
                                                "protected, to: drop}\n    - {from: fw, to: tx}\n"});
  EXPECT_THAT(std::string(output.status().message()),
              ::testing::HasSubstr("the NF has no output 'protected'; it has pass, alert"));
}

TEST(Graph, keeps_the_order_of_each_flow) {
  // flows of different ways meet again in front of `ids`, and in tx
  const std::vector<NfText> nfs{kFirewall, {"dscp", "remark", "map: [{from: 0, to: 10}]"}, kNids, kRouter};
  const std::string rows =
      "  graph:\n"
      "    - {from: rx, match: {protocol: tcp, dst: 172.16.0.0/12}, to: dscp}\n"
      "    - {from: rx, match: {protocol: udp}, to: fw}\n    - {from: rx, to: ids}\n"
      "    - {from: [fw, dscp], to: ids}\n"
      "    - {from: ids, match: {dst: 192.168.0.0/16}, to: rt}\n    - {from: ids, to: tx}\n"
      "    - {from: rt, to: tx}\n";
  std::string const& capture = clear_traffic()[2].capture;  // 100 flows, stamps that grow
  for (const std::uint32_t shards : {1U, 3U}) {
    for (const std::uint32_t mask : {0b0000U, 0b0101U}) {
      const Result<ChainOutput> output =
          run_chain({nfs, mask, capture, mask == 0 ? "none" : device_names().front(),
                     fmt::format("  shards: {}\n  tuning: {{unit_packets: 16}}\n{}", shards, rows), 6});
      ASSERT_TRUE(output.ok()) << output.status();
      ASSERT_GT(output->report.tx.sent, 1000U);
      std::map<std::string, std::string> last;  // stamp of each flow's last packet
      bool has_changed_places = false;
      std::string before;
      for (std::string const& packet : packets_of(output->capture)) {
        std::uint32_t seconds = 0;
        std::uint32_t ns = 0;
        std::memcpy(&seconds, packet.data(), sizeof seconds);
        std::memcpy(&ns, &packet[4], sizeof ns);
        const std::string stamp = fmt::format("{:010}.{:09}", seconds, ns);
        const std::string flow = packet.substr(16 + 14 + 9, 1) + packet.substr(16 + 14 + 12, 12);
        EXPECT_LE(last[flow], stamp);
        last[flow] = stamp;
        has_changed_places = has_changed_places || stamp < before;
        before = stamp;
      }
      EXPECT_TRUE(has_changed_places || shards == 1) << "flows pass each other: there is something to see";
    }
  }
}

}  // namespace
}  // namespace catena::testing
