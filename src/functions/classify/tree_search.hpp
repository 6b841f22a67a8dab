// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_tree.hpp"

/// The match of the tree for a tuple, possible as a packet or not.
namespace catena::classify::testing {

inline int find_by_tree(RuleTree const& tree, Tuple const& tuple) { return tree.find(key_of(tuple)); }

}  // namespace catena::classify::testing
