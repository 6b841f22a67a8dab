// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// Differences between a running chain and the chain that replaces it. Pure.
namespace catena::chain {

/// Whether both files say the same, in whatever form. The contents of the files named in them are not compared.
bool is_same_spec(ChainConfig const& now, ChainConfig const& next);

/// The keys of `spec` that differ, except `nfs`.
std::vector<std::string> changed_keys(ChainConfig const& now, ChainConfig const& next);

/// For each NF of `next`, the position in `now` of the NF with the same name and the same entry; nullopt: no such NF.
std::vector<std::optional<std::size_t>> same_nfs(ChainConfig const& now, ChainConfig const& next);

/// Whether `next` receives from and sends to the same ports: then its session can take over the ports of the running
/// session. FailedPrecondition, naming the difference, if anything else differs that only a new chain can have: its
/// names, its ports, outputs, sharing of the device, or its requested packet memory.
Status has_same_ends(ChainConfig const& now, ChainConfig const& next);

}  // namespace catena::chain
