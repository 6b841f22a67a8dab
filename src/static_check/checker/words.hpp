// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace catena::checker {

/// A rule of the check, and what an author is told who breaks it.
struct Rule {
  std::string_view name;
  std::string_view advice;
};

/// The rule that forbids this word as a token of a kernel; null if none does.
Rule const* rule_against(std::string_view word);

}  // namespace catena::checker
