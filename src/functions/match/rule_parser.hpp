// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/rule.hpp"
#include "functions/match/set_expression.hpp"

#include <catena/nf/refusal.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace catena::match {

struct RuleFile {
  std::vector<Rule> rules;
  /// Well-formed rules outside the supported subset; no part of them is applied. Reasons: "pcre", "protocol http",
  /// "action pass", "flow only_stream", "drop with flow to_client", "IPv6 address", "direction =>", "undefined variable
  /// $X", "matches no address".
  std::vector<nf::Refusal> refused;
  std::vector<std::string>
      errors;                   ///< each as "file:line:column: the error and its correction"; only the first kMaxErrors
  std::size_t error_count = 0;  ///< total number
};
inline constexpr std::size_t kMaxErrors = 20;

/// Parses the text of a rule file; `file` is its name in messages. Accepts any bytes. One rule per line; a backslash at
/// the end of a line continues it. At most one problem is reported per rule: an error in its outer form, else the first
/// unsupported part, else the first error in its parts.
RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables);

}  // namespace catena::match
