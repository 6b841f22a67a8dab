// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/named_files.hpp"

#include <span>
#include <string>
#include <vector>

namespace catena::service {

/// A warning, with the position of the name, for each file with keys whose mode lets users other than its owner read
/// it. With the rights of the calling thread; any thread. Files without an accessible mode are left out: the check of
/// the chain reports them.
std::vector<std::string> key_file_warnings(std::span<const chain::NamedFile> files);

}  // namespace catena::service
