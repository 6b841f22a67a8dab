// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace catena::nf {

/// What time it is, as the stamps of packets tell it: for NFs whose state ends with time. It never goes back, and no
/// stamp stops it for long:
///
///   a stamp that goes on       the clock goes on by as much, but by at most kLongestStepNs
///   one that goes back         the clock stays: packets of several queues come a little out of order, and a capture
///                              may have single stamps that are wrong
///   kStepPackets of them in a  the stamps were set back, or an earlier one was far ahead: the clock goes on from where
///   row, by over kSlackNs      it is, by the differences of the stamps from now on
///
/// What it says depends on the sequence of stamps alone. It starts at the first stamp. Not thread safe.
class PacketClock {
 public:
  static constexpr std::uint64_t kSlackNs = 1'000'000'000;
  static constexpr std::uint32_t kStepPackets = 64;
  /// Longer than any time-out; short enough that hundreds of jumps fit before 64 bits are used up.
  static constexpr std::uint64_t kLongestStepNs = 2ULL * 365 * 86'400 * 1'000'000'000;

  /// Takes a packet's stamp, or the time of a tick, and returns what time it is.
  std::uint64_t advance(std::uint64_t stamp_ns) {
    if (stamp_ns >= stamp_ns_) [[likely]] {
      const std::uint64_t step = std::min(stamp_ns - stamp_ns_, kLongestStepNs);
      now_ns_ += std::min(step, std::numeric_limits<std::uint64_t>::max() - now_ns_);
      stamp_ns_ = stamp_ns;
      behind_ = 0;
    } else if (!started_) {
      started_ = true;
      now_ns_ = std::min(stamp_ns, kLatestStartNs);
      stamp_ns_ = stamp_ns;
    } else if (stamp_ns_ - stamp_ns > kSlackNs && ++behind_ == kStepPackets) {
      stamp_ns_ = stamp_ns;
      behind_ = 0;
    }
    return now_ns_;
  }
  std::uint64_t now_ns() const { return now_ns_; }

  /// For a clock that goes on elsewhere.
  void save(StateWriter& state) const {
    state.put(now_ns_);
    state.put(stamp_ns_);
    state.put(behind_);
    state.put(started_);
  }
  void load(StateReader& state) {
    now_ns_ = state.get<std::uint64_t>();
    stamp_ns_ = state.get<std::uint64_t>();
    behind_ = std::min(state.get<std::uint32_t>(), kStepPackets - 1);
    started_ = state.get<bool>();
  }

 private:
  static constexpr std::uint64_t kLatestStartNs = std::uint64_t{1} << 63;  // the year 2262

  std::uint64_t now_ns_ = 0;
  std::uint64_t stamp_ns_ = std::numeric_limits<std::uint64_t>::max();  // what now_ns_ was taken from
  std::uint32_t behind_ = 0;                                            // stamps in a row that were far behind it
  bool started_ = false;
};

}  // namespace catena::nf
