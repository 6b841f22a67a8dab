// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_tree.hpp"

/// What the tree finds for a tuple that need not be possible as a packet.
namespace catena::classify::testing {

inline int find_by_tree(RuleTree const& tree, Tuple const& tuple) { return tree.find(key_of(tuple)); }

}  // namespace catena::classify::testing
