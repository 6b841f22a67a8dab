// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "hash_index.hpp"
#include "mapping_table.hpp"
#include "nat_config.hpp"
#include "port_parts.hpp"

namespace catena::nat {

/// What the NATs of one configuration share, be it one or several that divide the packets. An inside host belongs to
/// one shard, by a keyed hash of its address, and all its mappings are in that shard's table. Each shard gives out a
/// part of the ports of every external address, and a part of the identifiers of echoes; so an external endpoint tells
/// its shard, too. Where there are fewer ports than shards, the last shards have no mappings.
///
/// Any thread may read all but the tables, which never changes.
class Shards {
 public:
  /// The mappings of one shard. Where there are several, who uses them holds `mutex`; nobody holds two without
  /// std::lock().
  struct alignas(64) Table {
    explicit Table(MappingTable::Settings const& settings) : mappings(settings) {}
    std::mutex mutex;
    MappingTable mappings;
  };

  /// Takes the memory of all tables.
  explicit Shards(NatConfig config);

  NatConfig const& config() const { return config_; }
  /// Of shards with mappings.
  std::uint32_t count() const { return count_; }
  Table& table(std::uint32_t shard) { return tables_[shard]; }

  /// Who does not know the key cannot choose it.
  std::uint32_t shard_of_inside(std::uint32_t address) const {
    return static_cast<std::uint32_t>((hash_(address, 0) >> 32) * count() >> 32);
  }
  /// Nothing: no shard gives out this port.
  std::optional<std::uint32_t> shard_of_external(Endpoint const& endpoint) const {
    return (endpoint.protocol == Protocol::kIcmp ? identifiers_ : ports_).part_with(endpoint.port);
  }
  /// Of all tables.
  std::size_t memory_bytes() const;

 private:
  MappingTable::Settings settings_of(std::uint32_t shard) const;

  NatConfig config_;
  std::uint32_t count_;
  PortParts ports_;
  PortParts identifiers_;
  KeyedHash hash_;
  std::deque<Table> tables_;  // does not move them
};

}  // namespace catena::nat
