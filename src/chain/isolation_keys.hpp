// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/keys.hpp"

#include <catena/core/status.hpp>

#include <vector>

/// The keys of an NF's entry about its process and the code loaded there.
namespace catena::chain {

/// Reads `isolation`. The reader of a chain file never loads a plug-in. `before`: the NFs before it in the chain.
/// InvalidArgument, at its place, for invalid values, and if the NFs of a group are not consecutive or disagree.
Status read_isolation(FileSection& entry, std::vector<NfConfig> const& before, NfConfig& nf);

/// Reads `plugin` and `writes`; call it after read_isolation(). With a container, an absolute name of a plug-in is a
/// file of the container. InvalidArgument, at its place, for a missing file, an invalid receiver, and `writes` without
/// a plug-in.
Status read_plugin(FileSection& entry, NfConfig& nf);

}  // namespace catena::chain
