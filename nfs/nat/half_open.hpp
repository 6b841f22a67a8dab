// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "age_list.hpp"

namespace catena::nat {

/// The half open mappings in the order of their last use: all of them, and separately by external address. A mapping is
/// known by its position. Established ones need no memory of this table. Not thread safe.
class HalfOpen {
 public:
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  HalfOpen(std::uint32_t max_mappings, std::size_t addresses) : entries_(max_mappings), of_address_(addresses) {}

  /// Precondition: the mapping is not half open.
  void append(std::uint32_t position, std::uint32_t address, std::uint32_t now_s) {
    entries_[position].used_s = now_s;
    all_.append(entries_, position);
    of_address_[address].append(entries_, position);
    ++count_;
  }
  /// Precondition: the mapping was appended with this address.
  void remove(std::uint32_t position, std::uint32_t address) {
    all_.unlink(entries_, position);
    of_address_[address].unlink(entries_, position);
    --count_;
  }
  /// Within a second the order does not change, so then the lists are left alone: the neighbours of the mapping are far
  /// away in memory. Precondition: as for remove().
  void use(std::uint32_t position, std::uint32_t address, std::uint32_t now_s) {
    if (entries_[position].used_s != now_s) {
      remove(position, address);
      append(position, address, now_s);
    }
  }

  /// kNone: no mapping is half open.
  std::uint32_t oldest() const { return all_.oldest; }
  std::uint32_t oldest_of(std::uint32_t address) const { return of_address_[address].oldest; }
  std::uint64_t count() const { return count_; }

  [[gnu::always_inline]] void prefetch(std::uint32_t position) const { __builtin_prefetch(&entries_[position]); }
  std::size_t memory_bytes() const { return entries_.size() * sizeof(Entry) + of_address_.size() * sizeof(OfAddress); }

 private:
  struct Entry {
    std::uint32_t used_s = 0;  // last use, in the table's seconds
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    std::uint32_t older_of_address = kNone;
    std::uint32_t newer_of_address = kNone;
  };
  using OfAddress = AgeList<Entry, &Entry::older_of_address, &Entry::newer_of_address>;

  std::vector<Entry> entries_;  // by position
  AgeList<Entry, &Entry::older, &Entry::newer> all_;
  std::vector<OfAddress> of_address_;
  std::uint64_t count_ = 0;
};

}  // namespace catena::nat
