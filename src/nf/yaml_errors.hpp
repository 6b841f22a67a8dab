// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace catena::nf {

/// An error of a YAML text. Lines and columns count from 0, as in YAML::Mark.
struct YamlError {
  std::size_t line = 0;
  std::size_t column = 0;
  std::string message;
};

/// Explains an error of yaml-cpp in `text` for a user: the parser reports where it cannot continue, and this is often
/// after the mistake. Finds tabs in the indentation and brackets without a partner. `parsed`: the parser's own words
/// and position, which are kept for other mistakes.
YamlError explain_yaml_error(std::string_view text, YamlError parsed);

}  // namespace catena::nf
