// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/keys.hpp"

#include <catena/core/status.hpp>

#include <vector>

/// The keys of an NF's entry that say in which process it runs, and what is loaded there.
namespace catena::chain {

/// Reads `isolation`. A plug-in is never loaded by who reads a chain file. `before`: the NFs before it in the chain.
/// InvalidArgument, at its place, for what cannot be, and where the NFs of a group are no neighbours or do not agree.
Status read_isolation(FileSection& entry, std::vector<NfConfig> const& before, NfConfig& nf);

/// Reads `plugin` and `writes`; after read_isolation(). An absolute name of a plug-in means a file of the container,
/// where there is one. InvalidArgument, at its place, where there is no such file, for a receiver that is none, and for
/// `writes` without a plug-in.
Status read_plugin(FileSection& entry, NfConfig& nf);

}  // namespace catena::chain
