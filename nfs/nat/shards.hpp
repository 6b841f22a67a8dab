// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "hash_index.hpp"
#include "mapping_table.hpp"
#include "moved_ports.hpp"
#include "nat_config.hpp"
#include "port_parts.hpp"

namespace catena::nat {

/// State shared by the NATs of one configuration, one per shard. An inside host belongs to one shard, by a keyed hash
/// of its address, and all its mappings are in that shard's table. Each shard owns a part of the ports of every
/// external address, and a part of the echo identifiers, so an external endpoint also determines its shard. If there
/// are fewer ports than shards, the last shards have no mappings. Mappings from another number of shards keep their
/// ports: such a port belongs to the shard of its host, also after the end of the mapping.
///
/// Thread rule: everything except the tables is immutable from the first packet on, and any thread may read it.
class Shards {
 public:
  /// The mappings of one shard. With several shards, a user holds `mutex`; a thread locks two of them only by
  /// std::lock().
  struct alignas(64) Table {
    explicit Table(MappingTable::Settings const& settings) : mappings(settings) {}
    std::mutex mutex;
    MappingTable mappings;
  };

  /// Allocates all tables.
  explicit Shards(NatConfig config);

  NatConfig const& config() const { return config_; }
  /// Number of shards with mappings.
  std::uint32_t count() const { return count_; }
  Table& table(std::uint32_t shard) { return tables_[shard]; }

  /// The shard of an inside host. Cannot be predicted without the key.
  std::uint32_t shard_of_inside(std::uint32_t address) const {
    return static_cast<std::uint32_t>((hash_(address, 0) >> 32) * count() >> 32);
  }
  /// Divides inside hosts by the key of `other`, and equally if it has as many shards. Before the first packet.
  void divide_as(Shards const& other) { hash_ = other.hash_; }
  /// Copies shard_of_external() from `other`, which has the same ports and as many shards. Before the first packet.
  void take_ports_of(Shards const& other) { moved_ = other.moved_; }
  /// Shard `shard` has this port from now on. Before the first packet.
  void move_port(MappingTable::ExternalPort const& port, std::uint32_t shard);
  /// nullopt if no shard owns this port.
  std::optional<std::uint32_t> shard_of_external(Endpoint const& endpoint) const {
    if (moved_ != nullptr) [[unlikely]] {
      if (const std::optional<std::uint32_t> shard = moved_->shard_of(endpoint)) {
        return shard;
      }
    }
    return part_with(endpoint);
  }
  /// Echo replies per second of one shard.
  std::uint32_t echo_rate(std::uint32_t shard) const { return part_of(config_.echo_rate, shard); }
  /// Of all tables.
  std::size_t memory_bytes() const;

 private:
  std::optional<std::uint32_t> part_with(Endpoint const& external) const {
    return (external.protocol == Protocol::kIcmp ? identifiers_ : ports_).part_with(external.port);
  }
  /// The part of a shard in a limit of all; 0 only of 0.
  std::uint32_t part_of(std::uint32_t limit, std::uint32_t shard) const;
  MappingTable::Settings settings_of(std::uint32_t shard) const;

  NatConfig config_;
  std::uint32_t count_;
  PortParts ports_;
  PortParts identifiers_;
  KeyedHash hash_;
  std::shared_ptr<MovedPorts> moved_;  // null: no port was moved
  std::deque<Table> tables_;           // does not move its elements
};

}  // namespace catena::nat
