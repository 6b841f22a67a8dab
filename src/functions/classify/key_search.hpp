// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "functions/classify/bit_vector.hpp"
#include "functions/classify/linear_search.hpp"
#include "functions/classify/rule_tree.hpp"
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
inline Key key_of(Tuple const& tuple) { return classify::key_of({flow_key_of(tuple), tuple.has_ports}); }

inline int find_by_bit_vector(HostTables const& tables, Tuple const& tuple) { return find_rule(tables, key_of(tuple)); }

}  // namespace catena::classify::testing
