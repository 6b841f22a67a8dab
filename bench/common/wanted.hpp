// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace catena::bench {

/// Whether an option that lists `names` asks for this one: an empty list asks for all.
inline bool is_wanted(std::vector<std::string> const& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace catena::bench
