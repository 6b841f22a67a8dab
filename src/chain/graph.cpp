// SPDX-License-Identifier: Apache-2.0
#include "chain/graph.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace catena::chain {
namespace {

using packet::FieldSet;

FieldSet reads_of(NextNodeMatch const& match) {
  const auto if_asked = [](bool is_asked, FieldSet fields) { return is_asked ? fields : packet::kNoFields; };
  io::TrafficMatch const& traffic = match.traffic;
  const bool asks_for_ports = traffic.source_ports.has_value() || traffic.destination_ports.has_value();
  // what packet::shown_ports() reads of packets without a whole header: the bytes that would be one count as payload
  constexpr FieldSet kOfCutHeader = packet::fields(packet::kIpv4Protocol, packet::kIpv4Fragment, packet::kPayload);
  return if_asked(traffic.vlan.has_value(), packet::fields(packet::kEthType)) |
         if_asked(traffic.source.has_value(), packet::fields(packet::kIpv4Src)) |
         if_asked(traffic.destination.has_value(), packet::fields(packet::kIpv4Dst)) |
         if_asked(traffic.protocol.has_value(), packet::fields(packet::kIpv4Protocol)) |
         if_asked(traffic.source_ports.has_value(), packet::fields(packet::kL4Sport)) |
         if_asked(traffic.destination_ports.has_value(), packet::fields(packet::kL4Dport)) |
         if_asked(asks_for_ports, kOfCutHeader) |
         if_asked(match.tx_port.has_value(), packet::fields(packet::kMetaPort)) |
         if_asked(match.verdict.has_value(), packet::fields(packet::kMetaVerdict)) |
         if_asked(match.traffic != io::TrafficMatch(), packet::fields(packet::kMetaLayers));
}

/// Where packets may go from each NF, as far as that is another NF.
std::vector<std::vector<NextNodeRow const*>> rows_between_nfs(Graph const& graph, std::size_t nfs) {
  std::vector<std::vector<NextNodeRow const*>> rows(nfs);
  for (NextNodeRow const& row : graph.rows) {
    if (row.from != kRx && row.to < nfs) {
      rows[row.from].push_back(&row);
    }
  }
  return rows;
}

/// A way from `nf` back to it, through NFs of which each gets packets from another one that is left.
std::vector<NextNodeRow const*> way_round(std::vector<std::vector<NextNodeRow const*>> const& rows,
                                          std::vector<bool> const& is_left, std::size_t nf) {
  // each NF that is left has one before it that is left: so the way back goes round in the end
  std::vector<NextNodeRow const*> back;
  std::vector<bool> was_here(rows.size());
  while (!was_here[nf]) {
    was_here[nf] = true;
    for (std::size_t from = 0; from < rows.size(); ++from) {
      const auto row = std::ranges::find(rows[from], nf, &NextNodeRow::to);
      if (is_left[from] && row != rows[from].end()) {
        back.push_back(*row);
        nf = from;
        break;
      }
    }
  }
  // what was followed before the round began does not belong to it
  const auto begin = std::ranges::find(back, nf, &NextNodeRow::to);
  std::vector<NextNodeRow const*> round(begin, back.end());
  std::ranges::reverse(round);
  return round;
}

}  // namespace

std::string to_string(NextNodeMatch const& match) {
  std::vector<std::string> parts;
  if (match.traffic != io::TrafficMatch()) {
    parts.push_back(io::to_string(match.traffic));
  }
  if (match.rx_port) {
    parts.push_back(concat("rx_port ", *match.rx_port));
  }
  if (match.tx_port) {
    parts.push_back(concat("tx_port ", *match.tx_port));
  }
  if (match.verdict) {
    parts.push_back(concat("verdict ", *match.verdict == packet::Verdict::kAlert ? "alert" : "pass"));
  }
  if (!match.output.empty()) {
    parts.push_back(concat("output ", match.output));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_rows_of_rest(Graph& graph, std::size_t nfs, std::size_t to, std::string const& position) {
  const auto add = [&](std::size_t from) {
    const bool takes_all = std::ranges::any_of(graph.rows, [from](NextNodeRow const& row) {
      return row.from == from && !row.is_mirror && !row.match.has_conditions();
    });
    if (!takes_all) {
      graph.rows.push_back({.from = from, .to = to, .position = position, .is_of_rest = true});
    }
  };
  add(kRx);
  for (std::size_t nf = 0; nf < nfs; ++nf) {
    add(nf);
  }
}

std::uint32_t mirrors_of(Graph const& graph) {
  std::set<std::pair<std::size_t, std::size_t>> mirrors;
  for (NextNodeRow const& row : graph.rows) {
    if (row.is_mirror) {
      mirrors.emplace(row.from, row.to);
    }
  }
  return static_cast<std::uint32_t>(mirrors.size());
}

std::vector<plan::PlanEdge> edges_of(Graph const& graph, std::size_t nfs) {
  std::vector<plan::PlanEdge> edges;
  const auto add = [&edges](plan::PlanEdge const& edge) {
    if (std::ranges::find(edges, edge) == edges.end()) {
      edges.push_back(edge);
    }
  };
  const auto add_from = [&](std::size_t from) {
    bool takes_all = false;
    for (NextNodeRow const& row : graph.rows) {
      if (row.from == from && !takes_all) {
        takes_all = !row.is_mirror && !row.match.has_conditions();
        if (row.to != kDrop) {
          add({from, row.to, row.is_mirror});
        }
      }
    }
  };
  add_from(kRx);
  for (std::size_t nf = 0; nf < nfs; ++nf) {
    add_from(nf);
  }
  return edges;
}

packet::FieldSet reads_of(Graph const& graph, std::size_t from) {
  FieldSet reads = packet::kNoFields;
  for (NextNodeRow const& row : graph.rows) {
    if (row.from == from) {
      reads |= row.is_mirror ? packet::kAllFields : reads_of(row.match);
    }
  }
  return reads;
}

Result<std::vector<std::size_t>> order_of(Graph const& graph, std::span<const std::string> names) {
  const auto rows = rows_between_nfs(graph, names.size());
  std::vector<std::size_t> comes_from(names.size());  // rows of NFs that are left
  for (auto const& of_nf : rows) {
    for (NextNodeRow const* row : of_nf) {
      ++comes_from[row->to];
    }
  }
  std::vector<std::size_t> order;
  std::vector<bool> is_left(names.size(), true);
  while (order.size() < names.size()) {
    std::size_t next = 0;
    while (next < names.size() && !(is_left[next] && comes_from[next] == 0)) {
      ++next;
    }
    if (next == names.size()) {
      const auto first = static_cast<std::size_t>(std::ranges::find(is_left, true) - is_left.begin());
      const std::vector<NextNodeRow const*> round = way_round(rows, is_left, first);
      std::string way = names[round.front()->from];
      for (NextNodeRow const* row : round) {
        way += concat(" -> ", names[row->to]);
      }
      return absl::InvalidArgumentError(concat(round.back()->position, ": packets would go round: ", way,
                                               "; an NF may not receive its own packets again"));
    }
    is_left[next] = false;
    order.push_back(next);
    for (NextNodeRow const* row : rows[next]) {
      --comes_from[row->to];
    }
  }
  return order;
}

Graph renumbered(Graph graph, std::span<const std::size_t> order) {
  std::vector<std::size_t> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = i;
  }
  const auto renumber = [&number](std::size_t& nf) { nf = nf < number.size() ? number[nf] : nf; };
  for (NextNodeRow& row : graph.rows) {
    renumber(row.from);
    renumber(row.to);
  }
  return graph;
}

bool is_in_a_row(Graph const& graph, std::size_t from, std::size_t to) {
  const auto is_other = [&](NextNodeRow const& row) {
    const bool is_the_way = row.from == from && row.to == to && !row.is_mirror && !row.match.has_conditions();
    return (row.from == from || row.to == to) && !is_the_way;
  };
  return std::ranges::none_of(graph.rows, is_other) &&
         std::ranges::any_of(graph.rows, [&](NextNodeRow const& row) { return row.from == from && row.to == to; });
}

std::uint8_t NextNodeTable::target(std::size_t to) {
  if (to == kDrop) {
    return kDropped;
  }
  const auto known = std::ranges::find(targets_, to);
  if (known != targets_.end()) {
    return static_cast<std::uint8_t>(known - targets_.begin());
  }
  targets_.push_back(to);
  return static_cast<std::uint8_t>(targets_.size() - 1);
}

Result<NextNodeTable> NextNodeTable::create(Graph const& graph, std::size_t from,
                                            std::span<const nf::PacketOutput> outputs) {
  NextNodeTable table;
  table.from_ = static_cast<std::uint8_t>(from);
  bool takes_all = false;
  for (NextNodeRow const& row : graph.rows) {
    if (row.from != from || takes_all) {
      continue;
    }
    std::optional<std::uint8_t> output;
    if (!row.match.output.empty()) {
      std::vector<std::string> names(kCommonOutputs.begin(), kCommonOutputs.end());
      std::ranges::transform(outputs, std::back_inserter(names),
                             [](nf::PacketOutput const& own) { return std::string(own.name); });
      const auto known = std::ranges::find(names, row.match.output);
      if (known == names.end()) {
        return absl::InvalidArgumentError(concat(row.position, ": the NF has no output '", row.match.output,
                                                 "'; it has ", fmt::format("{}", fmt::join(names, ", "))));
      }
      output = static_cast<std::uint8_t>(known - names.begin());
    }
    takes_all = !row.is_mirror && !row.match.has_conditions();
    const std::uint8_t to = row.is_of_rest && row.to == kDrop ? kUnmatched : table.target(row.to);
    if (row.is_mirror && to < kMaxNextNodes) {
      table.mirrors_ |= std::uint64_t{1} << to;
    }
    table.rows_.push_back({row.match, output, row.match.has_conditions(), row.is_mirror, to});
  }
  table.is_direct_ = table.rows_.size() == 1 && takes_all && table.targets_.size() == 1;
  if (table.targets_.size() > kMaxNextNodes) {
    return absl::InvalidArgumentError(concat("packets go to ", table.targets_.size(), " places from one NF; at most ",
                                             kMaxNextNodes, " are possible"));
  }
  return table;
}

io::Met NextNodeTable::is_met(Row const& row, packet::Packet const& packet) const {
  NextNodeMatch const& match = row.match;
  if ((match.rx_port && *match.rx_port != packet.ingress()) || (match.tx_port && *match.tx_port != packet.port()) ||
      (match.verdict && *match.verdict != packet.verdict()) || (row.output && *row.output != packet.output_of(from_))) {
    return io::Met::kNo;
  }
  return io::meets(match.traffic, packet.frame(), packet.length(), packet.layers());
}

NextNodeTable::Decision NextNodeTable::decide(packet::Packet const& packet) const {
  std::uint64_t mirrors = 0;
  for (Row const& row : rows_) {
    const io::Met met = row.has_conditions ? is_met(row, packet) : io::Met::kYes;
    if (met == io::Met::kNo) {
      continue;
    }
    if (met == io::Met::kHidden) {
      return {kMalformed, mirrors};
    }
    if (!row.is_mirror) {
      return {row.to, mirrors};
    }
    mirrors |= std::uint64_t{1} << row.to;
  }
  return {kUnmatched, mirrors};  // no table of a chain file gets here: its last row takes all
}

std::optional<NextNodeTable::Decision> NextNodeTable::foresee(packet::Packet const& packet) const {
  const bool asks_nfs = std::ranges::any_of(rows_, [](Row const& row) {
    return row.output.has_value() || row.match.verdict.has_value() || row.match.tx_port.has_value();
  });
  return asks_nfs ? std::nullopt : std::optional(decide(packet));
}

bool has_branches(std::span<const NextNodeTable> tables) {
  return std::ranges::any_of(tables, [](NextNodeTable const& table) { return !table.is_direct(); });
}

}  // namespace catena::chain
