// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

/// What the tests of chains that change share.
namespace catena::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

/// CATENA_CHANGES: of a run, in the soak; else 20, or under a sanitizer as many as are said.
inline int changes_of_a_run(int sanitized) {
  const char* const text = std::getenv("CATENA_CHANGES");
  const int usual = kIsSanitized ? sanitized : 20;
  return text == nullptr ? usual : std::atoi(text);
}

}  // namespace catena::testing
