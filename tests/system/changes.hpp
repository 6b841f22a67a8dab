// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sanitized.hpp"

#include <cstdlib>

/// What the tests of chains that change share.
namespace catena::testing {

/// CATENA_CHANGES: of a run, in the soak; else 20, or under a sanitizer as many as are said.
inline int changes_of_a_run(int sanitized) {
  const char* const text = std::getenv("CATENA_CHANGES");
  const int usual = kIsSanitized ? sanitized : 20;
  return text == nullptr ? usual : std::atoi(text);
}

}  // namespace catena::testing
