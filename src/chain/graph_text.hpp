// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <string_view>

/// A chain as a picture, printed by `catena show graph`. A chain without a graph is a row. Pure.
namespace catena::chain {

enum class GraphFormat { kText, kMermaid, kDot };

/// kText: the rows, from rx to tx, NF by NF. kMermaid: a flowchart for pages that render Mermaid. kDot: for
/// Graphviz.
std::string draw(ChainConfig const& chain, GraphFormat format);

}  // namespace catena::chain
