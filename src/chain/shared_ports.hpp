// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/keys.hpp"

#include <catena/core/status.hpp>

/// The keys of a chain file for ports shared with other chains.
namespace catena::chain {

/// Reads `shared` of `rx:` or `tx:` into `port`. An error at its place if the section is not a port.
Status read_sharing(FileSection& section, PortConfig& port);

/// Reads `match` of `rx:`, after read_sharing(). Errors, each at its place, for a port that is not shared and a
/// condition met by no frame.
Status read_matches(FileSection& section, PortConfig& port);

/// Whether each port in both rx and tx is shared in both or in neither; `spec` has `rx` and `tx`. An error at `tx`.
Status check_sharing(FileSection& spec, PortConfig const& rx, PortConfig const& tx);

}  // namespace catena::chain
