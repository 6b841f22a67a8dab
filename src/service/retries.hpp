// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace catena::service {

/// When failed chains are started again: after 1 s, and after twice as long with each further failure, up to kLongest.
/// A chain that has run for kLongest is a good one again. Any thread; no other mutex is locked with its mutex.
class Retries {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{64};

  /// To be called regularly for each chain. Whether a failed chain is to be started now.
  bool is_due(std::string const& name, bool is_failed, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (!is_failed) {
      const auto found = chains_.find(name);
      if (found != chains_.end()) {
        found->second.is_waiting = false;
        if (now - found->second.start >= kLongest) {
          chains_.erase(found);
        }
      }
      return false;
    }
    Chain& chain = chains_[name];
    if (!chain.is_waiting) {
      chain.is_waiting = true;
      chain.start = now + pause_of(chain.failures++);
    }
    if (now < chain.start) {
      return false;
    }
    chain.is_waiting = false;
    return true;
  }

  /// Forgets a chain that a user has stopped or removed.
  void forget(std::string const& name) {
    const std::lock_guard lock(mutex_);
    chains_.erase(name);
  }

  /// Until the next start; nullopt: no start is planned.
  std::optional<std::chrono::seconds> left(std::string const& name, Clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    const auto found = chains_.find(name);
    if (found == chains_.end() || !found->second.is_waiting) {
      return std::nullopt;
    }
    return std::chrono::ceil<std::chrono::seconds>(std::max(found->second.start - now, Clock::duration::zero()));
  }

 private:
  struct Chain {
    std::uint32_t failures = 0;
    bool is_waiting = false;
    Clock::time_point start;  ///< the next one, or the last one
  };

  static std::chrono::seconds pause_of(std::uint32_t failures) {
    constexpr std::uint32_t kMostDoublings = 6;
    return std::chrono::seconds(1U << std::min(failures, kMostDoublings));
  }

  mutable std::mutex mutex_;
  std::map<std::string, Chain> chains_;
};

}  // namespace catena::service
