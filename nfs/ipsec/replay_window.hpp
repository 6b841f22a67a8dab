// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::ipsec {

/// Anti-replay window of RFC 4303 section 3.4.3: the last 64 sequence numbers as a bitmap that slides with the highest
/// one authenticated so far. Numbers are whole: 32 bits, or 64 where they are extended. Thread rule: one thread at a
/// time.
class ReplayWindow {
 public:
  static constexpr std::uint32_t kPackets = 64;
  /// How far behind the highest number extend() still places one. Far more than a packet pool has packets.
  static constexpr std::uint64_t kBehind = 1U << 24;

  /// `highest`: numbers up to this one count as authenticated; of the last 64 those whose bit i (highest - i) is set in
  /// `seen` count as seen, the others do not.
  explicit ReplayWindow(std::uint64_t highest = 0, std::uint64_t seen = 0) : highest_(highest), seen_(seen) {}

  std::uint64_t highest() const { return highest_; }
  std::uint64_t seen() const { return seen_; }

  /// The whole number of a packet that shows the low half `low` of an extended one (RFC 4303 Appendix A2.2): of the
  /// 2^32 numbers from kBehind behind the highest one on, the one with that half. The RFC lets them start at the
  /// window's left edge, so that any older number counts as one 2^32 later; here an old packet is recognized as such,
  /// and the answer is the same for a window that lags behind by the packets under way.
  std::uint64_t extend(std::uint32_t low) const {
    const std::uint64_t first = highest_ > kBehind ? highest_ - kBehind : 0;
    return first + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(first));
  }

  /// True if `sequence`, whose packet has a good ICV, was not seen before and is not left of the window; it is then
  /// marked as seen. Zero never is a sequence number (section 2.2).
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
