// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/traffic_match.hpp"
#include "plan/planner.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>
#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A chain with branches. A NextNodeTable has the next NF of packets from rx, or from one NF. Pure.
namespace catena::chain {

using plan::kRx;
using plan::kTx;
/// Target of packets dropped by a table.
inline constexpr std::size_t kDrop = SIZE_MAX - 2;

/// Reserved words in place of an NF name in a graph.
inline constexpr std::string_view kRxWord = "rx";
inline constexpr std::string_view kTxWord = "tx";
inline constexpr std::string_view kDropWord = "drop";

/// Outputs of every NF, by their numbers.
inline constexpr std::array<std::string_view, nf::kOwnOutputs> kCommonOutputs{"pass", "alert"};

/// The conditions of a row; without a condition it matches every packet.
struct NextNodeMatch {
  io::TrafficMatch traffic = {};
  std::optional<std::uint16_t> rx_port = {};    ///< ingress port
  std::optional<std::uint16_t> tx_port = {};    ///< egress port, as set by the NFs so far
  std::optional<packet::Verdict> verdict = {};  ///< of all NFs so far: kAlert if one raised an alert, else kPass
  std::string output = {};                      ///< name of the output of the NF; empty: any

  bool operator==(NextNodeMatch const&) const = default;
  bool has_conditions() const { return *this != NextNodeMatch(); }
};
/// "dst 10.1.0.0/16, output alert"; empty for a match without a condition.
std::string to_string(NextNodeMatch const& match);

/// Packets from `from` matching `match` go to `to`, or a copy of each does. Of the rows matching a packet, only the
/// mirrors before the first other row and this row apply.
struct NextNodeRow {
  std::size_t from = kRx;  ///< number of an NF, or kRx
  NextNodeMatch match = {};
  std::size_t to = kTx;  ///< an NF, kTx, or kDrop if not a mirror
  bool is_mirror = false;
  std::string position = {};  ///< file:line:column
  bool is_of_rest = false;    ///< from `unmatched`: for packets matching no row of the file
};

struct Graph {
  std::vector<NextNodeRow>
      rows;                   ///< in file order, one per `from`; the last of each `from` matches all remaining packets
  std::string position = {};  ///< file:line:column
};

/// Adds a row to `to` for rx, and for each of `nfs` NFs, unless its rows match all packets.
void add_rows_of_rest(Graph& graph, std::size_t nfs, std::size_t to, std::string const& position);

/// Number of pairs of a table and one of its mirror targets: the maximum number of copies of a packet at once.
std::uint32_t mirrors_of(Graph const& graph);

/// Maximum number of targets of one table: the bits of a Decision.
inline constexpr std::size_t kMaxNextNodes = 64;

/// The edges that packets may take, each once: from rx, and from the NFs in their order. Dropped packets take no edge.
std::vector<plan::PlanEdge> edges_of(Graph const& graph, std::size_t nfs);

/// The fields that the table of `from` reads on the CPU; all if it copies packets.
packet::FieldSet reads_of(Graph const& graph, std::size_t from);

/// A topological order of the NFs, the nearest to the order of the file. `names`: of the NFs. InvalidArgument, at a
/// row, if packets would reach an NF again; the message shows the cycle.
Result<std::vector<std::size_t>> order_of(Graph const& graph, std::span<const std::string> names);

/// The graph with NF `order[i]` as number i.
Graph renumbered(Graph graph, std::span<const std::size_t> order);

/// Whether all packets from NF number `from` go to `to`, and `to` receives no others.
bool is_in_a_row(Graph const& graph, std::size_t from, std::size_t to);

/// The next NFs of packets from rx or an NF, by conditions. Immutable; any thread.
class NextNodeTable {
 public:
  /// `outputs`: of the type of NF `from`, besides kCommonOutputs. InvalidArgument, at its row, for an unknown output.
  static Result<NextNodeTable> create(Graph const& graph, std::size_t from, std::span<const nf::PacketOutput> outputs);

  /// The NFs and kTx receiving packets or copies from here, each once.
  std::span<const std::size_t> targets() const { return targets_; }
  /// All packets go to the only target.
  bool is_direct() const { return is_direct_; }
  /// Bit i: target i gets copies.
  std::uint64_t mirrors() const { return mirrors_; }

  /// Decision::to of a dropped packet.
  static constexpr std::uint8_t kDropped = 0xFE;
  static constexpr std::uint8_t kUnmatched = 0xFF;  ///< the same: no row matched
  static constexpr std::uint8_t kMalformed = 0xFD;  ///< the same: a row needs ports hidden by the packet
  struct Decision {
    std::uint8_t to;        ///< index in targets(), or one of the above
    std::uint64_t mirrors;  ///< bit i: a copy goes to target i
  };
  /// For a packet that is not dropped.
  Decision decide(packet::Packet const& packet) const;
  /// The same for a packet upstream of this table, by its present headers; nullopt if the matching row may depend on
  /// the results of NFs.
  std::optional<Decision> foresee(packet::Packet const& packet) const;

 private:
  struct Row {
    NextNodeMatch match;
    std::optional<std::uint8_t> output;  ///< its number
    bool has_conditions;
    bool is_mirror;
    std::uint8_t to;
  };
  NextNodeTable() = default;
  std::uint8_t target(std::size_t to);
  io::Met is_met(Row const& row, packet::Packet const& packet) const;

  std::uint8_t from_ = 0;  ///< number of the NF; rows of rx have no output
  std::vector<Row> rows_;
  std::vector<std::size_t> targets_;
  bool is_direct_ = false;
  std::uint64_t mirrors_ = 0;
};

/// Whether packets take several branches somewhere: a table does more than to send all of them to one target.
bool has_branches(std::span<const NextNodeTable> tables);

}  // namespace catena::chain
