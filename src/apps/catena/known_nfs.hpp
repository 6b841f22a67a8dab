// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

#include "nf/registry.hpp"

namespace catena::cli {

/// The built-in NFs, the NFs in the folders of `nf_path` (see --nf-path), and the installed ones. Errors as
/// nf::load_plugins(): an NF that exists but does not load is an error.
Result<nf::Registry> known_nfs(std::string const& nf_path);

}  // namespace catena::cli
