// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::ipsec {

/// Anti-replay window of RFC 4303 section 3.4.3: which of the last numbers, up to the highest authenticated one, were
/// seen. The bitmap is a ring of words, as in RFC 6479: number n has bit n of it, and a window that moves on clears
/// whole words, but never shifts. Numbers are whole: 32 bits, or 64 if extended. Thread rule: one thread at a time.
class ReplayWindow {
 public:
  static constexpr std::uint32_t kMinPackets = 64;
  static constexpr std::uint32_t kMaxPackets = 4096;
  static constexpr std::uint32_t kWordBits = 64;
  /// Maximum distance below the highest number at which extend() places a number. Far more than the packets of a pool.
  static constexpr std::uint64_t kBehind = 1U << 24;
  /// Bit i of word w is set if number highest() - (64 * w + i) was seen.
  using Seen = std::vector<std::uint64_t>;
  /// The words of a window of `packets` numbers.
  static constexpr std::size_t words_of(std::uint32_t packets) { return (packets + kWordBits - 1) / kWordBits; }

  /// `packets`: numbers in the window, from kMinPackets to kMaxPackets. `highest`: numbers up to this one count as
  /// authenticated. Those that `seen` has no bit for count as seen.
  ReplayWindow(std::uint32_t packets, std::uint64_t highest, std::span<const std::uint64_t> seen)
      : packets_(packets),
        highest_(highest),
        words_(std::bit_ceil((packets + kWordBits - 2) / kWordBits + 1), ~std::uint64_t{0}) {
    word_of(highest) &= bit_of(highest) | (bit_of(highest) - 1);  // no number above it
    for (std::uint64_t behind = 0; behind < packets && behind <= highest; ++behind) {
      const bool was_seen =
          behind >= seen.size() * kWordBits || (seen[behind / kWordBits] >> behind % kWordBits & 1) != 0;
      if (!was_seen) {
        word_of(highest - behind) &= ~bit_of(highest - behind);
      }
    }
  }
  /// Nothing was seen.
  explicit ReplayWindow(std::uint32_t packets = kMinPackets, std::uint64_t highest = 0)
      : ReplayWindow(packets, highest, Seen(words_of(packets))) {}

  std::uint64_t highest() const { return highest_; }
  /// Of the window. Numbers left of it count as seen, so that a larger window that continues with this takes none
  /// twice.
  Seen seen() const {
    Seen seen(words_of(packets_), ~std::uint64_t{0});
    for (std::uint64_t behind = 0; behind < packets_ && behind <= highest_; ++behind) {
      const std::uint64_t number = highest_ - behind;
      const bool is_fresh = (words_[number / kWordBits & (words_.size() - 1)] & bit_of(number)) == 0;
      seen[behind / kWordBits] &= ~(std::uint64_t{is_fresh} << behind % kWordBits);
    }
    return seen;
  }

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
    if (sequence > highest_) {
      clear_words_between(highest_, sequence);
      highest_ = sequence;
    } else if (sequence == 0 || highest_ - sequence >= packets_) {
      return false;
    }
    std::uint64_t& word = word_of(sequence);
    const bool is_fresh = (word & bit_of(sequence)) == 0;
    word |= bit_of(sequence);
    return is_fresh;
  }

 private:
  static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << number % kWordBits; }
  std::uint64_t& word_of(std::uint64_t number) { return words_[number / kWordBits & (words_.size() - 1)]; }
  /// The words after the one of `from`, up to the one of `to`.
  void clear_words_between(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t last = to / kWordBits;
    const std::uint64_t steps = std::min<std::uint64_t>(last - from / kWordBits, words_.size());
    for (std::uint64_t word = last - steps; word != last;) {
      words_[++word & (words_.size() - 1)] = 0;
    }
  }

  std::uint32_t packets_;
  std::uint64_t highest_;
  std::vector<std::uint64_t> words_;  // a power of two, at least as many as a window reaches into
};

}  // namespace catena::ipsec
