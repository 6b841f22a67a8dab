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
  /// $X", "matches no address". With OnError::kSkip also the broken rules, with the reason kBroken and their error as
  /// the detail. In file order.
  std::vector<nf::Refusal> refused;
  std::vector<std::string>
      errors;                   ///< each as "file:line:column: the error and its correction"; only the first kMaxErrors
  std::size_t error_count = 0;  ///< total number
  std::size_t replaced = 0;     ///< rules replaced by a newer revision of the same rule, later in the file
};
inline constexpr std::size_t kMaxErrors = 20;
inline constexpr std::string_view kBroken = "broken";
/// A file with more broken rules is no rule file: an error even if broken rules are skipped.
inline constexpr std::size_t kMaxSkipped = 65536;

/// What a broken rule is: an error, or refused.
enum class OnError { kFail, kSkip };

/// Parses the text of a rule file; `file` is its name in messages. Accepts any bytes. One rule per line; a backslash at
/// the end of a line continues it. At most one problem is reported per rule: an error in its outer form, else the first
/// unsupported part, else the first error in its parts. A rule is identified by `gid` and `sid`. As in Suricata, a rule
/// replaces an applied rule of the same identity with a lower `rev`, and is broken if that has the same `rev` or a
/// higher one. All texts are escaped.
RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables,
                     OnError on_error = OnError::kFail);

}  // namespace catena::match
