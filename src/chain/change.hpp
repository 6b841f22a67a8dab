// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <vector>

/// What a running chain can become without being made anew. Pure.
namespace catena::chain {

/// The NFs whose own configuration is another one in `next`, by position; what is in the files that these name is not
/// looked at. FailedPrecondition, with what it is, where the two files differ in more than that: then NFs, places or
/// ends are others.
Result<std::vector<std::size_t>> changed_nfs(ChainConfig const& now, ChainConfig const& next);

}  // namespace catena::chain
