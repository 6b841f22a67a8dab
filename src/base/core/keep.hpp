// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace catena {

/// Keeps `owned` until the process ends, without destroying it. For memory that an unresponsive or lost device may
/// still write to. Null is allowed. Any thread.
template <typename T>
void keep_until_exit(std::unique_ptr<T> owned) {
  // Out of memory ends the process anyway, and with it all writers. Never destroyed, so leak checkers see the owner.
  static std::mutex mutex;
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
  static auto* const kKept = new std::vector<std::unique_ptr<T>>();
  const std::scoped_lock lock(mutex);
  kKept->push_back(std::move(owned));
}

}  // namespace catena
