// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_keys.hpp"
#include "chain/variables.hpp"

#include <string>
#include <vector>

namespace catena::chain {

/// A file included by a chain file.
struct IncludedFile {
  std::string file;
  std::string text;
};

/// The texts of a chain. Reading them again opens no file.
struct ChainSource {
  std::string file;
  std::string text = {};
  std::vector<IncludedFile> included = {};  ///< in the order of reading
  GivenOptions options = {};                ///< were put over it
  Variables environment = {};               ///< variables without a value in the file
};

}  // namespace catena::chain
