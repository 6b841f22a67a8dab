// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::ipsec {

/// Anti-replay window of RFC 4303 section 3.4.3: the last 64 sequence numbers as a bitmap, up to the highest
/// authenticated one. Numbers are whole: 32 bits, or 64 if extended. Thread rule: one thread at a time.
class ReplayWindow {
 public:
  static constexpr std::uint32_t kPackets = 64;
  /// Maximum distance below the highest number at which extend() places a number. Far more than the packets of a pool.
  static constexpr std::uint64_t kBehind = 1U << 24;

  /// `highest`: numbers up to this one count as authenticated. Of the last 64, number highest - i counts as seen if bit
  /// i of `seen` is set.
  explicit ReplayWindow(std::uint64_t highest = 0, std::uint64_t seen = 0) : highest_(highest), seen_(seen) {}

  std::uint64_t highest() const { return highest_; }
  std::uint64_t seen() const { return seen_; }

  /// The whole number of a packet with the low half `low` of an extended one (RFC 4303 Appendix A2.2): the one with
  /// this half among the 2^32 numbers that start kBehind below the highest. In the RFC they start at the window's left
  /// edge, so any older number counts as one 2^32 later. Here an old packet is recognized as old, and the result is the
  /// same for a window that lags by the packets in flight.
  std::uint64_t extend(std::uint32_t low) const {
    const std::uint64_t first = highest_ > kBehind ? highest_ - kBehind : 0;
    return first + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(first));
  }

  /// For `sequence` of a packet with a valid ICV: true, and marked as seen, if it was not seen before and is not left
  /// of the window. Zero is never a sequence number (section 2.2).
  bool accept(std::uint64_t sequence) {
    if (sequence == 0) {
      return false;
    }
    if (sequence > highest_) {
      const std::uint64_t ahead = sequence - highest_;
      seen_ = ahead < kPackets ? seen_ << ahead | 1U : 1U;
      highest_ = sequence;
      return true;
    }
    const std::uint64_t behind = highest_ - sequence;
    if (behind >= kPackets) {
      return false;
    }
    const std::uint64_t bit = std::uint64_t{1} << behind;
    const bool fresh = (seen_ & bit) == 0;
    seen_ |= bit;
    return fresh;
  }

 private:
  std::uint64_t highest_;
  std::uint64_t seen_;
};

}  // namespace catena::ipsec
