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

/// A chain that branches: its steering table says where packets go from rx and from each NF. Pure.
namespace catena::chain {

using plan::kRx;
using plan::kTx;
/// Stands for the end of packets that a table drops.
inline constexpr std::size_t kDrop = SIZE_MAX - 2;

/// Words that stand in a graph where the name of an NF may be.
inline constexpr std::string_view kRxWord = "rx";
inline constexpr std::string_view kTxWord = "tx";
inline constexpr std::string_view kDropWord = "drop";

/// Outputs of every NF, by their numbers.
inline constexpr std::array<std::string_view, nf::kOwnOutputs> kCommonOutputs{"pass", "alert"};

/// What a row asks of a packet; with no condition, nothing.
struct SteerMatch {
  io::TrafficMatch traffic = {};
  std::optional<std::uint16_t> rx_port = {};    ///< that it came in on
  std::optional<std::uint16_t> tx_port = {};    ///< that it is to leave through, as NFs said so far
  std::optional<packet::Verdict> verdict = {};  ///< of all NFs so far: kAlert where one raised an alert, else kPass
  std::string output = {};                      ///< name of that by which it leaves the NF; empty: any

  bool operator==(SteerMatch const&) const = default;
  bool has_conditions() const { return *this != SteerMatch(); }
};
/// "dst 10.1.0.0/16, output alert"; empty for a match without a condition.
std::string to_string(SteerMatch const& match);

/// Packets that leave `from` and meet `match` go to `to`, or a copy of each does. Of a packet's rows those up to the
/// first that is no mirror count.
struct SteerRow {
  std::size_t from = kRx;  ///< an NF by its number, or kRx
  SteerMatch match = {};
  std::size_t to = kTx;  ///< an NF, kTx, or kDrop where it is no mirror
  bool is_mirror = false;
  std::string position = {};  ///< file:line:column
  bool is_of_rest = false;    ///< stands for `unmatched`: of packets that meet no row of the file
};

struct Graph {
  std::vector<SteerRow> rows;  ///< as in the file, one for each `from`; of each the last takes all that is left
  std::string position = {};   ///< file:line:column
};

/// Adds, where packets may leave rx or one of `nfs` NFs that no row is for, a row by which they go to `to`.
void add_rows_of_rest(Graph& graph, std::size_t nfs, std::size_t to, std::string const& position);

/// Places that get copies, for each table that makes some: as many copies of a packet there may be at once.
std::uint32_t mirrors_of(Graph const& graph);

/// Targets of one table: as many as a Decision has bits.
inline constexpr std::size_t kMaxSteerTargets = 64;

/// The ways that packets may take, each once: from rx, and from the NFs in their order. Packets that are dropped take
/// none.
std::vector<plan::Link> links_of(Graph const& graph, std::size_t nfs);

/// The fields that the table of `from` reads on the CPU; all where it copies packets.
packet::FieldSet reads_of(Graph const& graph, std::size_t from);

/// Numbers of NFs so that packets come to each behind all that they met before; of several such orders the nearest to
/// that of the file. `names`: of the NFs. InvalidArgument, at a row, where packets would come to an NF again; the text
/// has the way round.
Result<std::vector<std::size_t>> order_of(Graph const& graph, std::span<const std::string> names);

/// The graph with NF `order[i]` as number i.
Graph renumbered(Graph graph, std::span<const std::size_t> order);

/// Whether all packets that leave NF number `from` go to `to`, and nothing else comes there.
bool is_in_a_row(Graph const& graph, std::size_t from, std::size_t to);

/// What the table of rx, or of an NF, does with packets. Immutable; any thread.
class SteerTable {
 public:
  /// `outputs`: those of the type of NF `from`, besides kCommonOutputs. InvalidArgument, at its row, for one that it
  /// does not have.
  static Result<SteerTable> create(Graph const& graph, std::size_t from, std::span<const nf::PacketOutput> outputs);

  /// NFs and kTx, to which packets or copies go from here, each once.
  std::span<const std::size_t> targets() const { return targets_; }
  /// All packets go to the only target.
  bool is_direct() const { return is_direct_; }
  /// Bit i: target i gets copies.
  std::uint64_t mirrors() const { return mirrors_; }

  /// As `to` of a Decision: the packet is dropped.
  static constexpr std::uint8_t kDropped = 0xFE;
  static constexpr std::uint8_t kUnmatched = 0xFF;  ///< the same, as no row took it
  static constexpr std::uint8_t kMalformed = 0xFD;  ///< the same, as a row asks for ports that it hides
  struct Decision {
    std::uint8_t to;        ///< position among targets(), or one of the above
    std::uint64_t mirrors;  ///< bit i: a copy goes to target i
  };
  /// Of a packet that is alive.
  Decision decide(packet::Packet const& packet) const;
  /// The same of a packet that has not come here yet, by its headers as they are now; none where the row that it meets
  /// may depend on what NFs say.
  std::optional<Decision> foresee(packet::Packet const& packet) const;

 private:
  struct Row {
    SteerMatch match;
    std::optional<std::uint8_t> output;  ///< its number
    bool has_conditions;
    bool is_mirror;
    std::uint8_t to;
  };
  SteerTable() = default;
  std::uint8_t target(std::size_t to);
  io::Met is_met(Row const& row, packet::Packet const& packet) const;

  std::uint8_t from_ = 0;  ///< number of the NF; no row asks for outputs of rx
  std::vector<Row> rows_;
  std::vector<std::size_t> targets_;
  bool is_direct_ = false;
  std::uint64_t mirrors_ = 0;
};

}  // namespace catena::chain
