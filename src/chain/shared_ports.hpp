// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/keys.hpp"

#include <catena/core/status.hpp>

/// What a chain file says of ports that other chains have, too.
namespace catena::chain {

/// Puts what `shared` of `rx:` or `tx:` says into `port`. An error at its place where it stands beside something that
/// is no port.
Status read_sharing(FileSection& section, PortConfig& port);

/// The same of `match` of `rx:`, after read_sharing(). Errors, each at its place, for a port that is not shared and a
/// condition that no frame meets.
Status read_matches(FileSection& section, PortConfig& port);

/// Whether a port that stands at both ends is shared at both or neither; `spec` has `rx` and `tx`. An error at `tx`.
Status check_sharing(FileSection& spec, PortConfig const& rx, PortConfig const& tx);

}  // namespace catena::chain
