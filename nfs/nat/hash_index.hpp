// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace catena::nat {

/// A keyed 64-bit hash. Each object draws a random key, so that outside hosts cannot choose endpoints that collide. The
/// key affects only an index's internal positions, never results.
class KeyedHash {
 public:
  KeyedHash() : add_(draw()), multiply_(draw() | 1) {}

  std::uint64_t operator()(std::uint64_t value) const { return fold(value ^ add_, multiply_); }
  std::uint64_t operator()(std::uint64_t high, std::uint64_t low) const {
    return fold((*this)(high) ^ low, multiply_ ^ add_);
  }

 private:
  static std::uint64_t draw() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }
  /// Combines both halves of the 128-bit product, so that every input bit reaches every output bit's neighbourhood.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  }

  std::uint64_t add_;
  std::uint64_t multiply_;
};

/// Finds positions in an external array by the hash of their keys: open addressing with linear probing, at most half
/// full, four bytes per slot. A slot stores eight bits of the hash beside the position, so nearly every inspected
/// position is the right one. All memory is allocated at construction. Not thread safe.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kMaxEntries = 16'000'000;

  /// For at most `max_entries` positions, all below `max_entries`; `max_entries` <= kMaxEntries.
  explicit HashIndex(std::uint32_t max_entries) {
    while ((std::uint64_t{1} << bits_) < std::uint64_t{max_entries} * 2) {
      ++bits_;
    }
    slots_.resize(std::size_t{1} << bits_);
  }

  /// The position with this hash and true `is_it(position)`, or kNone.
  template <typename IsIt>
  std::uint32_t find(std::uint64_t hash, IsIt is_it) const {
    const std::uint32_t tag = tag_of(hash);
    for (std::uint32_t at = home_of(hash); slots_[at] != kEmpty; at = next(at)) {
      if ((slots_[at] & kTagMask) == tag && is_it(position_in(slots_[at]))) {
        return position_in(slots_[at]);
      }
    }
    return kNone;
  }

  /// Precondition: the position is not in the index, and the index has fewer than `max_entries` positions.
  void insert(std::uint64_t hash, std::uint32_t position) {
    std::uint32_t at = home_of(hash);
    while (slots_[at] != kEmpty) {
      at = next(at);
    }
    slots_[at] = tag_of(hash) | (position + 1);
  }

  /// Removes a position in the index. `hash_of(position)` returns the hash of any other position in it: positions after
  /// the gap move into it, so that no tombstones accumulate.
  template <typename HashOf>
  void erase(std::uint64_t hash, std::uint32_t position, HashOf hash_of) {
    std::uint32_t gap = home_of(hash);
    while (position_in(slots_[gap]) != position) {
      gap = next(gap);
    }
    for (std::uint32_t at = next(gap); slots_[at] != kEmpty; at = next(at)) {
      const std::uint32_t home = home_of(hash_of(position_in(slots_[at])));
      if (distance(home, at) >= distance(gap, at)) {
        slots_[gap] = slots_[at];
        gap = at;
      }
    }
    slots_[gap] = kEmpty;
  }

  /// Prefetches the slots of this hash for a later find().
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[home_of(hash)]); }
  /// The first position inspected by find(), or kNone.
  std::uint32_t first_guess(std::uint64_t hash) const {
    const std::uint32_t tag = tag_of(hash);
    std::uint32_t at = home_of(hash);
    while (slots_[at] != kEmpty && (slots_[at] & kTagMask) != tag) {
      at = next(at);
    }
    return slots_[at] == kEmpty ? kNone : position_in(slots_[at]);
  }

  std::size_t memory_bytes() const { return slots_.size() * sizeof slots_[0]; }

 private:
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kTagMask = 0xFF000000;
  static_assert(kMaxEntries < ~kTagMask);

  // the home comes from the high bits of the hash, the tag from low ones
  std::uint32_t home_of(std::uint64_t hash) const { return static_cast<std::uint32_t>(hash >> (64 - bits_)); }
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash) & kTagMask; }
  static std::uint32_t position_in(std::uint32_t slot) { return (slot & ~kTagMask) - 1; }
  std::uint32_t next(std::uint32_t at) const { return (at + 1) & static_cast<std::uint32_t>(slots_.size() - 1); }
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return (to - from) & static_cast<std::uint32_t>(slots_.size() - 1);
  }

  std::uint32_t bits_ = 4;
  std::vector<std::uint32_t> slots_;
};

}  // namespace catena::nat
