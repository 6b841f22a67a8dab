// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/unit.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>

namespace catena::runtime {

/// A unit sent to an NF process.
struct SentUnit {
  memory::Unit* unit;
  std::uint32_t first_slot;  ///< of its frames in the memory of the process
  std::chrono::steady_clock::time_point at;
};

/// The units in an NF process, in order, and the number of their packets. One thread.
class UnitsInProcess {
 public:
  /// has_room() is false while `packets` or more are in the process.
  void bound(std::uint64_t packets) { max_packets_ = packets; }
  bool has_room() const { return packets_ < max_packets_; }
  bool empty() const { return units_.empty(); }
  std::size_t size() const { return units_.size(); }
  /// Precondition: not empty().
  SentUnit const& oldest() const { return units_.front(); }
  void add(SentUnit const& sent) {
    units_.push_back(sent);
    packets_ += sent.unit->count;
  }
  /// Removes the oldest unit. Precondition: not empty().
  SentUnit pop() {
    const SentUnit sent = units_.front();
    units_.pop_front();
    packets_ -= sent.unit->count;
    return sent;
  }

 private:
  std::deque<SentUnit> units_;
  std::uint64_t packets_ = 0;
  std::uint64_t max_packets_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace catena::runtime
