// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hash_index.hpp"

namespace catena::nat {

/// The common fields of the fragments of a datagram (RFC 791), on arrival.
struct DatagramKey {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint16_t id;
  std::uint8_t protocol;
  bool operator==(DatagramKey const&) const = default;
};

/// Stores decisions about first fragments for later ones (RFC 4787 section 11). A ring: each entry is valid for
/// kFragmentSeconds, and if the ring is full the oldest entry is evicted. All memory is allocated at construction. Not
/// thread safe.
template <typename Decision>
class DatagramTable {
 public:
  static constexpr std::uint64_t kFragmentSeconds = 30;
  static constexpr std::uint32_t kDatagrams = 16384;

  explicit DatagramTable(std::uint32_t capacity = kDatagrams) : ring_(capacity), index_(capacity) {}

  /// Stores a datagram; replaces an entry with the same key.
  void remember(DatagramKey const& key, Decision const& decision, std::uint64_t now_s) {
    if (const std::uint32_t known = position_of(key); known != HashIndex::kNone) {
      forget(known);
    }
    Entry& oldest = ring_[next_];
    if (oldest.is_indexed) {
      evicted_ += is_current(oldest, now_s) ? 1 : 0;
      forget(next_);
    }
    oldest = {.key = key, .decision = decision, .since_s = now_s, .is_indexed = true};
    index_.insert(hash(key), next_);
    next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
  }
  std::optional<Decision> find(DatagramKey const& key, std::uint64_t now_s) const {
    const std::uint32_t position = position_of(key);
    if (position == HashIndex::kNone || !is_current(ring_[position], now_s)) {
      return std::nullopt;
    }
    return ring_[position].decision;
  }

  /// Saves the datagrams for another table. That table may keep more of them, because forgotten entries use no space
  /// there. `put` and load()'s `get` convert a decision.
  template <typename Put>
  void save(nf::StateWriter& state, Put put) const {
    state.put(evicted_);
    for (std::uint32_t i = 0; i < ring_.size(); ++i) {
      Entry const& entry = ring_[(next_ + i) % ring_.size()];  // oldest first
      if (!entry.is_indexed) {
        continue;
      }
      state.put(true);
      state.put(entry.key.source);
      state.put(entry.key.destination);
      state.put(entry.key.id);
      state.put(entry.key.protocol);
      state.put(entry.since_s);
      put(entry.decision);
    }
    state.put(false);
  }
  /// Loads into a table never used before.
  template <typename Get>
  void load(nf::StateReader& state, Get get) {
    const auto evicted = state.get<std::uint64_t>();
    while (state.get<bool>()) {
      DatagramKey key{};
      key.source = state.get<std::uint32_t>();
      key.destination = state.get<std::uint32_t>();
      key.id = state.get<std::uint16_t>();
      key.protocol = state.get<std::uint8_t>();
      const auto since_s = state.get<std::uint64_t>();
      remember(key, get(), since_s);
    }
    evicted_ = evicted;
  }

  /// Takes over the datagrams of other tables, of too many the latest ones. For a table never used before.
  void take_over(std::span<DatagramTable const* const> before) {
    std::vector<Entry const*> entries;
    for (DatagramTable const* const table : before) {
      for (std::uint32_t i = 0; i < table->ring_.size(); ++i) {
        Entry const& entry = table->ring_[(table->next_ + i) % table->ring_.size()];  // oldest first
        if (entry.is_indexed) {
          entries.push_back(&entry);
        }
      }
    }
    std::ranges::stable_sort(entries, {}, &Entry::since_s);
    const std::size_t too_many = entries.size() - std::min(entries.size(), ring_.size());
    for (Entry const* const entry : std::span(entries).subspan(too_many)) {
      remember(entry->key, entry->decision, entry->since_s);
    }
  }
  /// Adds the count of evicted datagrams of a table that others have taken over.
  void add_evicted(DatagramTable const& before) { evicted_ += before.evicted_; }

  /// Entries removed before their expiry.
  std::uint64_t evicted() const { return evicted_; }
  std::size_t memory_bytes() const { return ring_.size() * sizeof(Entry) + index_.memory_bytes(); }

 private:
  struct Entry {
    DatagramKey key{};
    Decision decision{};
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
  void forget(std::uint32_t position) {
    index_.erase(hash(ring_[position].key), position, [this](std::uint32_t other) { return hash(ring_[other].key); });
    ring_[position].is_indexed = false;
  }

  std::vector<Entry> ring_;
  KeyedHash hash_;
  HashIndex index_;
  std::uint32_t next_ = 0;
  std::uint64_t evicted_ = 0;
};

/// The translated addresses of a datagram's first fragment.
struct AddressPair {
  std::uint32_t source;
  std::uint32_t destination;
};
using FragmentTable = DatagramTable<AddressPair>;

}  // namespace catena::nat
