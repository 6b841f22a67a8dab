// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace catena::runtime {

/// Pending replacements of a stage's object, each for the first unit of its version (see Session::change()). `Next` has
/// the replacement, and afterwards the replaced object.
template <typename Next>
class PendingReplacement {
 public:
  // Any thread.
  /// `version`: above all earlier ones and the versions of all received units.
  void add(std::uint32_t version, Next next) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({version, std::move(next)});
  }
  /// Number of pending replacements.
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  /// Objects replaced since the last call, so that they are not destroyed on the packet path.
  std::vector<Next> reclaim() {
    const std::lock_guard lock(mutex_);
    return std::exchange(replaced_, {});
  }

  // The thread of the stage.
  /// Whether the unit has a newer version than earlier ones.
  bool begins_with(memory::Unit const& unit) const { return unit.version > version_; }
  /// Calls `exchange(next)` for each up to that version, in order. It swaps the object and its replacement.
  template <typename Exchange>
  void follow(std::uint32_t version, Exchange exchange) {
    const std::lock_guard lock(mutex_);
    for (; !waiting_.empty() && waiting_.front().version <= version; waiting_.pop_front()) {
      exchange(waiting_.front().next);
      replaced_.push_back(std::move(waiting_.front().next));
    }
    version_ = version;
  }

 private:
  struct Waiting {
    std::uint32_t version;
    Next next;
  };
  std::uint32_t version_ = 0;  ///< for the thread of the stage
  mutable std::mutex mutex_;   ///< guards the next two
  std::deque<Waiting> waiting_;
  std::vector<Next> replaced_;
};

}  // namespace catena::runtime
