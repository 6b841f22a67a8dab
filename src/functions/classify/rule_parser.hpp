// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "functions/classify/rule.hpp"

/// Rules files: one rule per line, in either of two forms, in any mix; `#` starts a comment.
///   deny tcp 10.0.0.0/8 any 1024-65535 443                             action protocol source destination ports
///   @10.0.0.0/8 0.0.0.0/0 1024 : 65535 443 : 443 0x06/0xFF 0x0000/0x0000   ClassBench: no action; TCP flags last
namespace catena::classify {

inline constexpr std::size_t kMaxRuleFileBytes = std::size_t{16} << 20;

struct RuleFile {
  std::vector<Rule> rules;          ///< in file order, which is the order of matching
  std::uint32_t flagged_lines = 0;  ///< ClassBench lines whose TCP flags would narrow the rule; flags are ignored
};

/// The rules of `text`; `file` is its name in messages, `classbench_action` the action of ClassBench lines. Pure.
/// InvalidArgument `file:line:column: ...`: a line that is no rule, an address or protocol with bits set outside its
/// mask, an empty port range, ports for a protocol without ports (readable form), more than kMaxRules; no rule at all.
Result<RuleFile> parse_rules(std::string_view text, std::string_view file, Action classbench_action = Action::kDeny);

/// The same from a file. NotFound if it cannot be read; InvalidArgument over kMaxRuleFileBytes.
Result<RuleFile> load_rules(std::string const& path, Action classbench_action);

}  // namespace catena::classify
