// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rule.hpp"
#include "set_expression.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::nids {

/// A well-formed rule that names something outside the supported subset; nothing of it is applied.
struct Refusal {
  std::uint32_t line;
  std::uint32_t column;
  std::string what;  ///< "pcre", "protocol http", "action pass", "flow only_stream", "IPv6 address", "direction =>"
};

struct RuleFile {
  std::vector<Rule> rules;
  std::vector<Refusal> refused;
  std::vector<std::string>
      errors;                   ///< "file:line:column: what is wrong and what to write instead"; the first kMaxErrors
  std::size_t error_count = 0;  ///< of all

  /// What was refused and how often, most frequent first.
  std::vector<std::pair<std::string, std::size_t>> refusal_counts() const;
};
inline constexpr std::size_t kMaxErrors = 20;

/// Parses a rule file that stands in memory; `file` is its name in messages. Takes any bytes. One rule a line, a
/// backslash at the end of a line continues it. Of each rule at most one thing is reported: an error in its outer
/// form, else the first thing that is not supported, else the first error in its parts.
RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables);

}  // namespace catena::nids
