// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace catena {

/// Backoff of a polling thread between rounds without work: first it spins, then it yields, then it sleeps. One thread.
class PollBackoff {
 public:
  static constexpr std::uint32_t kSpins = 64;
  static constexpr std::uint32_t kYields = 4032;
  /// Number of yields after which blocking is better.
  static constexpr std::uint32_t kYieldsBeforeBlock = 64;
  static constexpr std::chrono::microseconds kShortSleep{50};
  /// Number of short sleeps after which no work is expected soon. Longer sleeps make an idle run nearly free.
  static constexpr std::uint32_t kShortSleeps = 200;
  static constexpr std::chrono::microseconds kLongSleep{500};

  void found_work() { idle_rounds_ = 0; }
  void found_nothing() { idle_rounds_ += idle_rounds_ < kAll ? 1 : 0; }
  /// Whether a thread with a wake-up event should wait for it instead of calling rest().
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
