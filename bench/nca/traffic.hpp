// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nca/nca.h>
#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct hs_database;
struct hs_scratch;

/// Packets that contain strings, with Hyperscan's matches as the expected results of a library under measurement.
namespace catena::bench {

/// Hyperscan in block mode. Not thread safe.
class Hyperscan {
 public:
  /// Searches for strings byte by byte; their numbers are their positions. Errors: Unavailable if the processor lacks a
  /// feature needed by the library; InvalidArgument with the library's text if it rejects the strings.
  static Result<Hyperscan> create(std::span<const std::string> strings);

  /// Every occurrence of every string, sorted as documented in nca.h, without duplicates; `packet` is a position in
  /// `packets`. Internal: the library failed.
  Result<std::vector<nca_match>> scan(std::span<const nca_packet> packets) const;
  /// Packet bytes per second of all threads together. Each of `threads` threads scans all packets repeatedly, starting
  /// at a different packet, until `seconds` have passed and it has scanned all packets once. Internal: the library
  /// failed.
  Result<double> bytes_per_s(std::span<const nca_packet> packets, double seconds, std::uint32_t threads) const;

 private:
  struct Free {
    void operator()(hs_database* database) const;
    void operator()(hs_scratch* scratch) const;
  };
  Hyperscan() = default;
  Result<double> bytes_per_s_of_one(std::span<const nca_packet> packets, std::size_t first, double seconds) const;
  std::unique_ptr<hs_database, Free> database_;
  std::unique_ptr<hs_scratch, Free> scratch_;
};

/// Packets of variable size have kLeastBytes to kMaxBytes bytes, uniformly distributed: on average 583, as in the
/// draft.
inline constexpr std::uint32_t kLeastBytes = 64;
inline constexpr std::uint32_t kMaxBytes = 1102;
inline constexpr std::uint32_t kAverageBytes = (kLeastBytes + kMaxBytes) / 2;
static_assert(kAverageBytes == 583);

struct TrafficSpec {
  std::uint32_t packets = 0;
  std::uint32_t bytes = 0;             ///< per packet; 0: variable
  std::uint32_t matching_percent = 0;  ///< of the packets, rounded to the nearest whole number
};

struct Traffic {
  std::vector<std::uint8_t> bytes;
  std::vector<nca_packet> packets;   ///< into `bytes`; a tag is the packet's position
  std::vector<nca_match> matches;    ///< as found by Hyperscan; `packet` is a position
  std::vector<std::uint32_t> first;  ///< per packet, plus one: start of its matches
};

/// Random bytes containing no string, then one random string at a random position in the given share of packets, chosen
/// at random. Deterministic for equal arguments. Errors:
///   InvalidArgument  no string is short enough for the packets
///   Internal         Hyperscan fails, or does not match exactly the packets with a string
Result<Traffic> make_traffic(TrafficSpec const& spec, std::span<const std::string> strings, Hyperscan const& hyperscan);

/// The first `count` lines of a file. Errors: NotFound; InvalidArgument if the file has fewer lines, or an empty one.
Result<std::vector<std::string>> read_strings(std::string const& path, std::size_t count);

}  // namespace catena::bench
