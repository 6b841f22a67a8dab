// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "functions/lpm/route_file.hpp"

namespace catena::lpm {

/// Longest-prefix match on the CPU without DPDK, by a search in ranges of addresses (Lampson, Srinivasan, Varghese: "IP
/// lookups using multiway and multicolumn search", INFOCOM 1998). The routes cut the addresses into ranges with one
/// longest prefix each, and a lookup searches for the last range that begins at or before the address. An array indexed
/// by the first bits limits the search. It shares nothing with the kernel's table, so that each can verify the other.
///
/// n routes take at most 8n bytes and 2 MiB, whatever they are. Immutable: lookups are safe from any thread.
class RangeTable {
 public:
  /// Maximum routes: about twice the content of kMaxRouteFileBytes.
  static constexpr std::size_t kMaxRoutes = std::size_t{1} << 25;

  /// `routes` sorted as by parse_routes(). ResourceExhausted: more than kMaxRoutes.
  static Result<RangeTable> create(std::span<const Route> routes);

  /// The port of the longest prefix with `address` (host order); nullopt without a match.
  std::optional<std::uint16_t> find(std::uint32_t address) const {
    const std::uint32_t high = address >> kLowBits;
    const std::uint32_t low = address & ((1U << kLowBits) - 1);
    const std::uint32_t first = first_[high];
    const std::uint16_t* start = starts_.data() + first;
    for (std::uint32_t count = first_[high + 1] - first; count > 1;) {
      const std::uint32_t half = count / 2;
      start += start[half] <= low ? half : 0;  // no branch, which would be unpredictable
      count -= half;
    }
    const std::uint16_t port = ports_[static_cast<std::size_t>(start - starts_.data())];
    return port == kNoPort ? std::nullopt : std::optional(port);
  }

  /// Memory use.
  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kIndexBits = 18;
  static constexpr std::uint32_t kLowBits = 32 - kIndexBits;
  static constexpr std::uint32_t kBuckets = 1U << kIndexBits;
  static constexpr std::uint16_t kNoPort = 0xFFFF;
  static_assert(kNoPort > kMaxPort);
  RangeTable() = default;
  void open_buckets(std::uint32_t count);
  void add(std::uint32_t address, std::uint16_t port);

  std::vector<std::uint32_t> first_;   ///< by the first bits of an address, and one more: number of their first range
  std::vector<std::uint16_t> starts_;  ///< last bits of a range's first address; 0 for the first range of each bucket
  std::vector<std::uint16_t> ports_;   ///< by range; kNoPort without a route
};

}  // namespace catena::lpm
