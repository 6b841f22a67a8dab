// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_keys.hpp"

#include <string>

/// Names of files for readers with another working folder.
namespace catena::cli {

/// `path` from the root on.
std::string whole_path(std::string const& path);
/// The same for all files named by options; standard streams stay.
chain::GivenOptions with_whole_paths(chain::GivenOptions options);

}  // namespace catena::cli
