// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace catena::packet {

/// The current time by the stamps of packets, for time-outs and rates of NFs. It never goes back, and no stamp stops it
/// for long:
///
///   a later stamp              advances the clock by the difference, by at most kLongestStepNs
///   an earlier stamp           leaves the clock unchanged: packets of several queues are slightly out of order, and a
///                              capture may have single wrong stamps
///   kStepPackets of these in   the stamps were set back, or an earlier one was far ahead: the clock continues from its
///   a row, by over kSlackNs    value, by the differences of the stamps from now on
///
/// Its value depends on the sequence of stamps alone. It starts at the first stamp. Not thread safe.
class PacketClock {
 public:
  static constexpr std::uint64_t kSlackNs = 1'000'000'000;
  static constexpr std::uint32_t kStepPackets = 64;
  /// Longer than any time-out; short enough for hundreds of jumps before 64 bits are used up.
  static constexpr std::uint64_t kLongestStepNs = 2ULL * 365 * 86'400 * 1'000'000'000;

  /// Takes a packet's stamp, or the time of a tick, and returns the current time.
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

  /// Whether the latest stamp was not far before the earlier ones.
  bool is_in_order() const { return behind_ == 0; }
  /// The stamp at which the clock will show now_ns() + `ns`; the largest one if no stamp is so late.
  std::uint64_t stamp_after(std::uint64_t ns) const {
    return stamp_ns_ + std::min(ns, std::numeric_limits<std::uint64_t>::max() - stamp_ns_);
  }

  /// Moves a clock to another process, by an nf::StateWriter and an nf::StateReader.
  template <typename Writer>
  void save(Writer& state) const {
    state.put(now_ns_);
    state.put(stamp_ns_);
    state.put(behind_);
    state.put(started_);
  }
  template <typename Reader>
  void load(Reader& state) {
    now_ns_ = state.template get<std::uint64_t>();
    stamp_ns_ = state.template get<std::uint64_t>();
    behind_ = std::min(state.template get<std::uint32_t>(), kStepPackets - 1);
    started_ = state.template get<bool>();
  }

 private:
  static constexpr std::uint64_t kLatestStartNs = std::uint64_t{1} << 63;  // the year 2262

  std::uint64_t now_ns_ = 0;
  std::uint64_t stamp_ns_ = std::numeric_limits<std::uint64_t>::max();  // the stamp that now_ns_ corresponds to
  std::uint32_t behind_ = 0;                                            // consecutive stamps far before it
  bool started_ = false;
};

}  // namespace catena::packet
