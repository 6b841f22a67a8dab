// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace catena {

/// How a thread that polls rests between rounds that found no work: not at all, then it yields, then it sleeps. One
/// thread.
class PollBackoff {
 public:
  static constexpr std::uint32_t kSpins = 64;
  static constexpr std::uint32_t kYields = 4032;
  /// Of those, so many before it is better to be woken.
  static constexpr std::uint32_t kYieldsBeforeBlock = 64;
  static constexpr std::chrono::microseconds kShortSleep{50};
  /// After so many of these nothing is expected soon: longer sleeps cost an idle run next to nothing.
  static constexpr std::uint32_t kShortSleeps = 200;
  static constexpr std::chrono::microseconds kLongSleep{500};

  void found_work() { idle_rounds_ = 0; }
  void found_nothing() { idle_rounds_ += idle_rounds_ < kAll ? 1 : 0; }
  /// Whether who is woken when there is work should wait for that, in place of rest().
  bool should_block() const { return idle_rounds_ > kSpins + kYieldsBeforeBlock; }
  void rest() const {
    if (idle_rounds_ <= kSpins) {
      return;
    }
    if (idle_rounds_ <= kSpins + kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(idle_rounds_ < kAll ? kShortSleep : kLongSleep);
    }
  }

 private:
  static constexpr std::uint32_t kAll = kSpins + kYields + kShortSleeps;
  std::uint32_t idle_rounds_ = 0;
};

}  // namespace catena
