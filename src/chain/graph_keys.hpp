// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/graph.hpp"
#include "chain/keys.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace catena::chain {

/// Reads `graph` and `unmatched` of `spec`, if present, into `chain`, which has its NFs, and sorts these topologically.
/// The NFs' own outputs are not known here. InvalidArgument, each at its place, for unknown NF names, cycles, an NF
/// without packets, an unreachable row, packets without a row, and NFs of a group that are not consecutive.
Status read_graph(FileSection& spec, ChainConfig& chain);

}  // namespace catena::chain
