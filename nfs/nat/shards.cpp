// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

#include <utility>

namespace catena::nat {

Shards::Shards(NatConfig config)
    : config_(std::move(config)),
      ports_(config_.mappings.ports, config_.shard.count),
      identifiers_(config_.mappings.identifiers, config_.shard.count) {
  for (std::uint32_t shard = 0; shard < count(); ++shard) {
    tables_.emplace_back(settings_of(shard));
  }
}

MappingTable::Settings Shards::settings_of(std::uint32_t shard) const {
  const nf::Shard place{shard, count()};
  MappingTable::Settings settings = config_.mappings;
  settings.ports = ports_.part(shard);
  settings.identifiers = identifiers_.part(shard);
  settings.max_mappings = static_cast<std::uint32_t>(place.part_of(settings.max_mappings));
  settings.max_half_open = static_cast<std::uint32_t>(place.part_of(settings.max_half_open));
  return settings;
}

std::size_t Shards::memory_bytes() const {
  std::size_t bytes = 0;
  for (Table const& table : tables_) {
    bytes += table.mappings.memory_bytes();
  }
  return bytes;
}

}  // namespace catena::nat
