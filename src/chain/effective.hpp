// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <string>

namespace YAML {
class Node;
}

namespace catena::chain {

/// The document of the chain file, with the options over it.
YAML::Node effective_document(ChainConfig const& config);

/// The chain file of `config` as YAML, with the options over it and with the defaults of all keys that have one; the
/// configurations of NFs are as given. A chain file itself: read from the same folder, it gives the same chain.
std::string effective_text(ChainConfig const& config);

}  // namespace catena::chain
