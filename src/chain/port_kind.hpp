// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/keys.hpp"
#include "io/output_file.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "plan/planner.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// The kinds of rx and tx as a table. A new kind is a file of ports/ and a row in port_kinds.cpp: checks, messages, the
/// options --rx and --tx, `catena show schema` and the opening of ports follow from the row. This library only returns
/// the functions of a row that open something; `pipeline` calls them. Thread rule: any thread.
namespace catena::chain {

using Sources = std::vector<std::unique_ptr<io::Source>>;

/// What a source is opened for.
struct SourceRequest {
  PortConfig const& rx;
  std::span<io::DpdkPort> ports;  ///< one per source; with its devices opened if rx names devices
  io::PartOf const& part_of;      ///< of several sources: the one that has a packet
  std::stop_token give_up;        ///< ends waits with Cancelled
};

/// A kind as `rx:`. Without `open` it is not for rx.
struct RxKind {
  /// The first key is the kind's. The others go with the kind only.
  std::span<const Key> keys = {};
  std::string_view elsewhere = {};  ///< advice for a section with one of the others and without the kind
  std::string_view note = {};       ///< about the argument of --rx
  /// Reads a section accepted by check_keys(). Errors are at their place in the file.
  Status (*parse)(FileSection& section, PortConfig& port) = nullptr;
  /// Sizes and headers of the packets; null: unknown before they arrive. Errors: as profile_of().
  Result<plan::PacketProfile> (*profile)(PortConfig const& rx) = nullptr;
  /// Reads all packets of a file, for a check before a run; null: it has no file. Errors: as the source of a run.
  Status (*verify)(PortConfig const& rx) = nullptr;
  /// One source per port of the request, or one. Errors: as the factories of `io`.
  Result<Sources> (*open)(SourceRequest const& request) = nullptr;
};

/// A kind as `tx:`. Without `open` and `write` it is not for tx.
struct TxKind {
  std::span<const Key> keys = {};  ///< the first one is the kind's; empty: `tx: null`
  std::string_view note = {};      ///< about the argument of --tx
  Status (*parse)(FileSection& section, PortConfig& port) = nullptr;
  /// `port`: with its devices opened if tx names devices.
  std::unique_ptr<io::Sink> (*open)(PortConfig const& tx, io::DpdkPort& port) = nullptr;
  /// Of a kind that writes the file `target`: the sink of that file, which is opened with the other outputs.
  std::unique_ptr<io::Sink> (*write)(io::OutputFile file) = nullptr;
};

/// A row of the table.
struct PortKind {
  std::string_view name;           ///< its key in a chain file, and its word in --rx and --tx
  std::string_view argument = {};  ///< what follows the word, for messages: "FILE"; "{...}" for a section
  bool is_live = false;            ///< a port of a network
  bool names_file = false;         ///< the argument is the name of a file
  bool is_artificial = false;      ///< each of several sources can make its part of the packets
  /// Takes the argument of an option; false: invalid. Null: the kind is no value of --rx and --tx.
  bool (*take_argument)(std::string_view argument, PortConfig& port) = nullptr;
  /// "pcap office.pcap", for the report.
  std::string (*describe)(PortConfig const& port) = nullptr;
  RxKind rx = {};
  TxKind tx = {};

  bool is_for_rx() const { return rx.open != nullptr; }
  bool is_for_tx() const { return tx.open != nullptr || tx.write != nullptr; }
};

/// All kinds, in the order of messages.
std::span<PortKind const* const> port_kinds();

/// The keys of `rx:` and `tx:`: those of all kinds, then `common`.
std::vector<Key> rx_keys(std::span<const Key> common);
std::vector<Key> tx_keys(std::span<const Key> common);
/// "pcap: FILE", for Key::alternatives. The texts live as long as the process.
std::span<const std::string_view> rx_alternatives();
std::span<const std::string_view> tx_alternatives();

/// Reads `rx` and `tx` of `spec`, which check_keys() has accepted. Errors are at their place in the file.
Result<PortConfig> read_rx(FileSection& spec);
Result<PortConfig> read_tx(FileSection& spec);

/// For an `open` of one source.
Result<Sources> one_source(Result<std::unique_ptr<io::Source>> source);

}  // namespace catena::chain
