// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "functions/classify/bit_vector.hpp"
#include "functions/classify/linear_search.hpp"
#include "functions/classify/search.kernel.hpp"

/// The match of the kernel's search for a tuple, possible as a packet or not.
namespace catena::classify::testing {

/// The tables in the form of search.kernel.hpp, on the host.
struct HostTables : BitVector {
  explicit HostTables(BitVector tables) : BitVector(std::move(tables)) {}
  std::vector<std::uint32_t> const& row_words() const { return rows; }
  static std::uint32_t lowest_bit(std::uint32_t value) { return static_cast<std::uint32_t>(std::countr_zero(value)); }
};

/// The key of a tuple, possible as a packet or not.
inline Key key_of(Tuple const& tuple) {
  Key key{};
  key.src = tuple.src;
  key.dst = tuple.dst;
  key.sport = static_cast<std::uint16_t>(tuple.sport);
  key.dport = static_cast<std::uint16_t>(tuple.dport);
  key.protocol = static_cast<std::uint8_t>(tuple.protocol);
  key.has_ports = tuple.has_ports ? 1 : 0;
  return key;
}

inline int find_by_bit_vector(HostTables const& tables, Tuple const& tuple) { return find_rule(tables, key_of(tuple)); }

}  // namespace catena::classify::testing
