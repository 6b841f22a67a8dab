// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hash_index.hpp"

namespace catena::nat {

/// What the fragments of a datagram have in common (RFC 791), as they arrive.
struct DatagramKey {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint16_t id;
  std::uint8_t protocol;
  bool operator==(DatagramKey const&) const = default;
};

/// The addresses that a datagram's first fragment was given.
struct AddressPair {
  std::uint32_t source;
  std::uint32_t destination;
};

/// Remembers translated first fragments for those that follow (RFC 4787 section 11). A ring: each entry counts for
/// kFragmentSeconds, and where there are more datagrams than room the oldest is evicted. All memory is taken at
/// creation. Not thread safe.
class FragmentTable {
 public:
  static constexpr std::uint64_t kFragmentSeconds = 30;
  static constexpr std::uint32_t kDatagrams = 16384;

  explicit FragmentTable(std::uint32_t capacity = kDatagrams) : ring_(capacity), index_(capacity) {}

  /// Remembers a datagram; what was known under the same key is forgotten.
  void remember(DatagramKey const& key, AddressPair const& addresses, std::uint64_t now_s);
  std::optional<AddressPair> find(DatagramKey const& key, std::uint64_t now_s) const;

  /// Entries that had to go before their time.
  std::uint64_t evicted() const { return evicted_; }
  std::size_t memory_bytes() const { return ring_.size() * sizeof(Entry) + index_.memory_bytes(); }

 private:
  struct Entry {
    DatagramKey key{};
    AddressPair addresses{};
    std::uint64_t since_s = 0;
    bool is_indexed = false;
  };

  std::uint64_t hash(DatagramKey const& key) const {
    return hash_(std::uint64_t{key.source} << 32 | key.destination, std::uint64_t{key.id} << 8 | key.protocol);
  }
  std::uint32_t position_of(DatagramKey const& key) const {
    return index_.find(hash(key), [&](std::uint32_t position) { return ring_[position].key == key; });
  }
  static bool is_current(Entry const& entry, std::uint64_t now_s) { return now_s - entry.since_s <= kFragmentSeconds; }
  void forget(std::uint32_t position);

  std::vector<Entry> ring_;
  KeyedHash hash_;
  HashIndex index_;
  std::uint32_t next_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace catena::nat
