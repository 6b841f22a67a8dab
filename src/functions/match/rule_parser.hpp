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
  /// Well-formed rules that name something outside the supported subset; nothing of them is applied. Reasons: "pcre",
  /// "protocol http", "action pass", "flow only_stream", "drop with flow to_client", "IPv6 address", "direction =>",
  /// "undefined variable $X", "matches no address".
  std::vector<nf::Refusal> refused;
  std::vector<std::string>
      errors;                   ///< "file:line:column: what is wrong and what to write instead"; the first kMaxErrors
  std::size_t error_count = 0;  ///< of all
};
inline constexpr std::size_t kMaxErrors = 20;

/// Parses a rule file that is in memory; `file` is its name in messages. Takes any bytes. One rule a line, a
/// backslash at the end of a line continues it. Of each rule at most one thing is reported: an error in its outer
/// form, else the first thing that is not supported, else the first error in its parts.
RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables);

}  // namespace catena::match
