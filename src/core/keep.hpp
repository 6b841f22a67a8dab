// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace catena {

/// Keeps `owned` until the process ends, without ever destroying it: what a device that does not answer, or was lost,
/// may still write to. Null is fine. Any thread.
template <typename T>
void keep_until_exit(std::unique_ptr<T> owned) {
  // Out of memory ends the process anyway, and with it all that could write here. Never destroyed, so that checkers for
  // leaks see who owns it.
  static std::mutex mutex;
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
  static auto* const kKept = new std::vector<std::unique_ptr<T>>();
  const std::scoped_lock lock(mutex);
  kKept->push_back(std::move(owned));
}

}  // namespace catena
