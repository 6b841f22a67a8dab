// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <vector>

/// Changes of a running chain without packet loss. Pure.
namespace catena::chain {

/// The NFs whose own configuration differs in `next`, by position; the contents of the files named in it are not
/// compared. FailedPrecondition, naming the difference, if the two files differ in more: in NFs, placement or ports.
Result<std::vector<std::size_t>> changed_nfs(ChainConfig const& now, ChainConfig const& next);

/// Whether `next` receives from and sends to the same ports: then its session can take over the ports of the running
/// session. FailedPrecondition, naming the difference, if anything else differs that only a new chain can have: its
/// names, its ports, outputs, sharing of the device, or its requested packet memory.
Status has_same_ends(ChainConfig const& now, ChainConfig const& next);

}  // namespace catena::chain
