// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hash_index.hpp"
#include "mapping.hpp"

namespace catena::nat {

/// External endpoints with their shard, if they are outside the shard's own part of the ports. Not thread safe.
class MovedPorts {
 public:
  /// Precondition: the endpoint is not in it.
  void add(Endpoint const& external, std::uint32_t shard) {
    if (entries_.size() == capacity_) {
      grow();
    }
    insert(static_cast<std::uint32_t>(entries_.size()), key_of(external));
    entries_.push_back({key_of(external), shard});
  }
  /// nullopt if the endpoint is not in it.
  std::optional<std::uint32_t> shard_of(Endpoint const& external) const {
    const std::uint64_t key = key_of(external);
    const std::uint32_t at = index_.find(hash_(key), [&](std::uint32_t entry) { return entries_[entry].key == key; });
    return at == HashIndex::kNone ? std::nullopt : std::optional(entries_[at].shard);
  }
  std::size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry) + index_.memory_bytes(); }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t shard;
  };

  void insert(std::uint32_t entry, std::uint64_t key) { index_.insert(hash_(key), entry); }
  void grow() {
    capacity_ *= 2;
    index_ = HashIndex(capacity_);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      insert(i, entries_[i].key);
    }
  }

  std::uint32_t capacity_ = 64;
  std::vector<Entry> entries_;
  KeyedHash hash_;
  HashIndex index_{capacity_};
};

}  // namespace catena::nat
