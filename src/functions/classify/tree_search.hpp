// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/classify/linear_search.hpp"
#include "functions/classify/rule_tree.hpp"

/// What the tree finds for a tuple that need not be possible as a packet.
namespace catena::classify::testing {

inline int find_by_tree(RuleTree const& tree, Tuple const& tuple) {
  Key key{};
  key.src = tuple.src;
  key.dst = tuple.dst;
  key.sport = static_cast<std::uint16_t>(tuple.sport);
  key.dport = static_cast<std::uint16_t>(tuple.dport);
  key.protocol = static_cast<std::uint8_t>(tuple.protocol);
  key.has_ports = tuple.has_ports ? 1 : 0;
  return tree.find(key);
}

}  // namespace catena::classify::testing
