// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <vector>

/// What a running chain can become without a packet being lost. Pure.
namespace catena::chain {

/// The NFs whose own configuration is another one in `next`, by position; what is in the files that these name is not
/// looked at. FailedPrecondition, with what it is, where the two files differ in more than that: then NFs, places or
/// ends are others.
Result<std::vector<std::size_t>> changed_nfs(ChainConfig const& now, ChainConfig const& next);

/// Whether packets come from where they came from and go where they went in `next`: then its session can take over
/// the ends of the one that there is. FailedPrecondition, with what it is, where something else has changed that only a
/// chain that is made anew can have: its names, its ends, or how much packet memory it asks for.
Status has_same_ends(ChainConfig const& now, ChainConfig const& next);

}  // namespace catena::chain
