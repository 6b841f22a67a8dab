// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace catena {

/// A counter with one writer thread at a time. Any thread may read it at any time. An update costs as much as that of a
/// plain integer. Counters read together need not be of the same moment.
class Counter {
 public:
  Counter() = default;
  explicit Counter(std::uint64_t count) : count_(count) {}
  Counter(Counter const& other) : count_(std::uint64_t{other}) {}
  Counter& operator=(Counter const& other) { return *this = std::uint64_t{other}; }
  Counter& operator=(std::uint64_t count) {
    count_.store(count, std::memory_order_relaxed);
    return *this;
  }
  Counter& operator+=(std::uint64_t more) { return *this = *this + more; }
  Counter& operator-=(std::uint64_t less) { return *this = *this - less; }
  Counter& operator++() { return *this += 1; }
  Counter& operator--() { return *this -= 1; }
  operator std::uint64_t() const { return count_.load(std::memory_order_relaxed); }  // NOLINT: it is a number

 private:
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace catena
