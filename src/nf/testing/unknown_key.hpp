// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace catena::nf::testing {

inline constexpr std::string_view kUnknownKey = "not_a_key_of_any_nf";

/// A configuration with one additional key, unknown to the NF, and the line of this key, from 1.
struct WithUnknownKey {
  std::string yaml;
  std::size_t line;
};

/// `yaml`: a mapping in block style, in flow style (`{}` as well), or nothing.
WithUnknownKey with_unknown_key(std::string_view yaml);

}  // namespace catena::nf::testing
