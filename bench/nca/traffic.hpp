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

/// Packets with strings in them, and what Hyperscan finds there: for measuring a library that must find the same.
namespace catena::bench {

/// Hyperscan in block mode. Not thread safe.
class Hyperscan {
 public:
  /// Strings are searched for byte by byte, and numbered by their position. Errors: Unavailable if the processor lacks
  /// what the library needs; InvalidArgument with the library's text if it refuses the strings.
  static Result<Hyperscan> create(std::span<const std::string> strings);

  /// Every occurrence of every string, sorted as nca.h says and without duplicates; `packet` is a position in
  /// `packets`. Internal: the library failed.
  Result<std::vector<nca_match>> scan(std::span<const nca_packet> packets) const;
  /// Scans all packets again and again in each of `threads` threads, which begin at other packets, until `seconds` are
  /// over and all were scanned once, and gives the bytes of packets a second, of all threads. Internal: the library
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

/// Packets of variable size have kLeastBytes to kMaxBytes bytes, each as likely, which is the draft's 583 on average.
inline constexpr std::uint32_t kLeastBytes = 64;
inline constexpr std::uint32_t kMaxBytes = 1102;
inline constexpr std::uint32_t kAverageBytes = (kLeastBytes + kMaxBytes) / 2;
static_assert(kAverageBytes == 583);

struct TrafficSpec {
  std::uint32_t packets = 0;
  std::uint32_t bytes = 0;             ///< of each packet; 0: variable
  std::uint32_t matching_percent = 0;  ///< of the packets, which are the nearest whole number
};

struct Traffic {
  std::vector<std::uint8_t> bytes;
  std::vector<nca_packet> packets;   ///< into `bytes`; a tag is the packet's position
  std::vector<nca_match> matches;    ///< as Hyperscan finds them; `packet` is a position
  std::vector<std::uint32_t> first;  ///< by packet, and one more: where its matches begin
};

/// Random bytes in which no string occurs, then one random string at a random place in as many packets as asked for,
/// which are random too; always the same for the same arguments. Errors:
///   InvalidArgument  no string is short enough for the packets
///   Internal         Hyperscan does not find exactly the packets that got a string, or fails
Result<Traffic> make_traffic(TrafficSpec const& spec, std::span<const std::string> strings, Hyperscan const& hyperscan);

/// The first `count` lines of a file. Errors: NotFound; InvalidArgument if there are fewer, or an empty one.
Result<std::vector<std::string>> read_strings(std::string const& path, std::size_t count);

}  // namespace catena::bench
