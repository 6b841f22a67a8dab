// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace catena::io {

/// A count that one thread at a time adds to and any thread reads; adding costs what it does without other threads.
class Counter {
 public:
  void operator+=(std::uint64_t more) { count_.store(*this + more, std::memory_order_relaxed); }
  void operator++() { *this += 1; }
  operator std::uint64_t() const { return count_.load(std::memory_order_relaxed); }  // NOLINT: it is a number

 private:
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace catena::io
