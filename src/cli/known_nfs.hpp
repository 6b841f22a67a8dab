// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

#include "nf/registry.hpp"

namespace catena::cli {

/// The built-in NFs, those in the folders of `nf_path` (see --nf-path), and the installed ones. Errors as
/// nf::load_plugins(): an NF that is there and does not load is not passed over.
Result<nf::Registry> known_nfs(std::string const& nf_path);

}  // namespace catena::cli
