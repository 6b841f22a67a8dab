// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace catena::testing {

/// Whether this is built with AddressSanitizer or ThreadSanitizer: all takes several times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace catena::testing
