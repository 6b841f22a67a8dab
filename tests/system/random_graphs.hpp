// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "system/same_bytes.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::testing {

/// NFs and the rows of a graph between them.
struct GraphText {
  std::vector<NfText> nfs;
  std::string rows;          ///< further lines of `spec:`
  bool is_by_packet = true;  ///< every NF decides each packet by itself
};

/// Graphs that no operator would write; the same for the same seed.
class RandomGraphs {
 public:
  explicit RandomGraphs(unsigned seed) : random_(seed) {}

  /// One that a chain file may have.
  GraphText next() {
    for (;;) {
      GraphText graph = any();
      ChainRun run{graph.nfs, 0, clear_traffic().front().capture, "none", graph.rows};
      if (chain::parse_chain(chain_text(run, "out.pcap"), data_file("chain/test.yaml")).ok()) {
        return graph;
      }
    }
  }
  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }

 private:
  static constexpr std::size_t kRx = SIZE_MAX;
  struct Row {
    std::size_t from;
    std::string match;
    std::string to;
    bool is_mirror;
  };

  bool chance(double share) { return std::bernoulli_distribution(share)(random_); }
  static std::string name_of(std::size_t nf) { return nf == kRx ? "rx" : "n" + std::to_string(nf); }

  std::string any_match(std::size_t from) {
    static constexpr std::array kMatches{
        "match: {protocol: tcp}",          "match: {protocol: udp}",       "match: {protocol: icmp}",
        "match: {dst: 10.0.0.0/8}",        "match: {src: 192.168.0.0/16}", "match: {dst: 172.16.0.0/12, protocol: tcp}",
        "match: {dport: 0-1023}",          "match: {sport: 1024-40000}",   "match: {vlan: untagged}",
        "match: {verdict: alert}",         "match: {tx_port: 1}",          "output: alert",
        "output: pass, match: {dport: 53}"};
    const std::size_t of_nf = 2;  // at the end, not for rx
    return kMatches[below(static_cast<std::uint32_t>(kMatches.size() - (from == kRx ? of_nf : 0)))];
  }

  /// `is_one_way`: all packets come on one way, so that their order is that of rx.
  NfText any_nf(std::size_t number, bool is_one_way, GraphText& graph) {
    NfText nf;
    switch (below(is_one_way ? 8 : 4)) {
      case 0:
        nf = kFirewall;
        break;
      case 1:
        nf = kNids;
        break;
      case 2:
        nf = kRouter;
        break;
      case 3:
        nf = {"", "remark", fmt::format("map: [{{from: 0, to: {}}}]", 1 + below(60))};
        break;
      case 4:
        nf = kEncrypt;
        nf.config = concat("direction: encrypt, sa: ", sa_file("sa.yaml", encrypting_++), ", mtu: 2034");
        break;
      case 5:
        nf = kDecrypt;
        break;
      case 6:
        nf = kNat;
        break;
      default:
        nf = has_monitor_ ? kNat : kMonitor;
        has_monitor_ = true;
        break;
    }
    static constexpr std::array<std::string_view, 4> kByPacket{"firewall", "nids", "router", "remark"};
    graph.is_by_packet = graph.is_by_packet && std::ranges::find(kByPacket, nf.type) != kByPacket.end();
    nf.name = name_of(number);
    return nf;
  }

  GraphText any() {
    GraphText graph;
    has_monitor_ = false;
    encrypting_ = 0;
    const std::uint32_t nfs = 2 + below(7);
    std::vector<Row> rows;
    std::vector<std::size_t> ways(nfs);  // that packets come to each NF on, from another place each
    std::vector<std::size_t> only_from(nfs, kRx);
    const auto add = [&](std::size_t from, std::size_t to, bool is_mirror, std::string match) {
      rows.push_back({from, std::move(match), to == nfs ? "tx" : name_of(to), is_mirror});
      if (to < nfs) {
        ++ways[to];
        only_from[to] = from;
      }
    };
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      const std::uint32_t from = below(static_cast<std::uint32_t>(nf + 1));
      const bool is_mirror = chance(0.2);
      const std::size_t source = from == nf ? kRx : from;
      add(source, nf, is_mirror, chance(is_mirror ? 0.7 : 1) ? any_match(source) : "");
    }
    for (std::uint32_t more = below(5); more > 0; --more) {
      const std::size_t from = chance(0.3) ? kRx : below(nfs);
      const std::size_t first = from == kRx ? 0 : from + 1;
      const std::size_t to = first + below(static_cast<std::uint32_t>(nfs - first + 1));
      add(from, to, chance(0.3), any_match(from));
      if (chance(0.2)) {
        rows.push_back({from, any_match(from), "drop", false});
      }
    }
    std::ranges::shuffle(rows, random_);
    for (std::size_t i = 0; i <= nfs; ++i) {
      const std::size_t from = i == nfs ? kRx : i;
      const std::size_t first = from == kRx ? 0 : from + 1;
      if (chance(0.85)) {
        const std::size_t to = first + below(static_cast<std::uint32_t>(nfs - first + 1));
        add(from, to, false, "");
      }
    }
    std::vector<bool> is_one_way(nfs);
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      is_one_way[nf] = ways[nf] == 1 && (only_from[nf] == kRx || is_one_way[only_from[nf]]);
      graph.nfs.push_back(any_nf(nf, is_one_way[nf], graph));
    }
    graph.rows = "  graph:\n";
    for (Row const& row : rows) {
      graph.rows +=
          fmt::format("    - {{from: {}, {}{}to: {}}}\n", name_of(row.from), row.match, row.match.empty() ? "" : ", ",
                      row.is_mirror ? fmt::format("{{mirror: {}}}", row.to) : row.to);
    }
    graph.rows += chance(0.7) ? "  unmatched: drop\n" : "  unmatched: tx\n";
    return graph;
  }

  std::mt19937 random_;
  bool has_monitor_ = false;
  unsigned encrypting_ = 0;  ///< NFs, each with keys of its own
};

}  // namespace catena::testing
