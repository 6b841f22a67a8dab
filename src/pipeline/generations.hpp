// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace catena::runtime {

/// The generations of an object with several holders, each of which moves to the latest one in its own time. A
/// generation without holders ends, except the latest. One thread.
template <typename T>
class Generations {
 public:
  /// `first`: held by all of `holders`; outlives this.
  Generations(T& first, std::size_t holders) : latest_(&first), held_(holders, &first) {}

  T& latest() const { return *latest_; }
  /// The latest one from here on.
  void add(std::unique_ptr<T> next) {
    latest_ = next.get();
    made_.push_back(std::move(next));
  }
  /// Holder number `holder` has the latest one, and nothing of an earlier one.
  void hold_latest(std::size_t holder) {
    held_[holder] = latest_;
    std::erase_if(made_, [this](std::unique_ptr<T> const& each) {
      return each.get() != latest_ && std::ranges::find(held_, each.get()) == held_.end();
    });
  }

 private:
  T* latest_;
  std::vector<std::unique_ptr<T>> made_;  ///< all but the first
  std::vector<T*> held_;                  ///< by each holder
};

}  // namespace catena::runtime
