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

/// Reads `graph` and `unmatched` of `spec`, where they are, into `chain`, which has its NFs; these are then in an order
/// in which packets meet them. What an NF's own outputs are is not known here. InvalidArgument, each at its place, for
/// names of no NF, packets that would go round, an NF that none comes to, a row that no packet gets as far as, packets
/// that nothing is said of, and NFs of a group that are not in a row.
Status read_graph(FileSection& spec, ChainConfig& chain);

}  // namespace catena::chain
