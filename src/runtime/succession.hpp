// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace catena::runtime {

/// What is to take the place of what a stage has, each at the first unit of its version (see Session::change()). `Next`
/// is that; once it was taken, what was there before.
template <typename Next>
class Succession {
 public:
  // Any thread.
  /// `version`: above those of before, and of no unit that rx has taken.
  void add(std::uint32_t version, Next next) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({version, std::move(next)});
  }
  /// How many wait to be taken.
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  /// What was there before those that were taken since the last time, so that it does not end on the packet path.
  std::vector<Next> reclaim() {
    const std::lock_guard lock(mutex_);
    return std::exchange(replaced_, {});
  }

  // The thread of the stage.
  /// Whether the unit is of another version than those before.
  bool begins_with(memory::Unit const& unit) const { return unit.version > version_; }
  /// Calls `exchange(next)` for each up to that version, in order: it puts the one in the other's place.
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
  std::uint32_t version_ = 0;  ///< of the thread of the stage
  mutable std::mutex mutex_;   ///< of what follows
  std::deque<Waiting> waiting_;
  std::vector<Next> replaced_;
};

}  // namespace catena::runtime
