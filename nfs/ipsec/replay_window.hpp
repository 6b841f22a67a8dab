// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::ipsec {

/// Anti-replay window of RFC 4303 section 3.4.3: the last 64 sequence numbers as a bitmap that slides with the highest
/// one authenticated so far. Thread rule: one thread at a time.
class ReplayWindow {
 public:
  static constexpr std::uint32_t kPackets = 64;

  /// True if `sequence`, whose packet has a good ICV, was not seen before and is not left of the window; it is then
  /// marked as seen. Zero never is a sequence number (section 2.2).
  bool accept(std::uint32_t sequence) {
    if (sequence == 0) {
      return false;
    }
    if (sequence > highest_) {
      const std::uint32_t ahead = sequence - highest_;
      seen_ = ahead < kPackets ? seen_ << ahead | 1U : 1U;
      highest_ = sequence;
      return true;
    }
    const std::uint32_t behind = highest_ - sequence;
    if (behind >= kPackets) {
      return false;
    }
    const std::uint64_t bit = std::uint64_t{1} << behind;
    const bool fresh = (seen_ & bit) == 0;
    seen_ |= bit;
    return fresh;
  }

 private:
  std::uint32_t highest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: highest_ - i
};

}  // namespace catena::ipsec
