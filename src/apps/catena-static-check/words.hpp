// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace catena::checker {

/// A rule of the check, and the advice for an author after a violation.
struct Rule {
  std::string_view name;
  std::string_view advice;
};

/// The rule that forbids this word as a token of a kernel; null if no rule does.
Rule const* rule_against(std::string_view word);

}  // namespace catena::checker
