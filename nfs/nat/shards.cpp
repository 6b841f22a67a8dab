// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

#include <algorithm>
#include <utility>

namespace catena::nat {
namespace {

std::uint32_t size_of(PortRange const& range) { return std::uint32_t{range.last} - range.first + 1; }

}  // namespace

Shards::Shards(NatConfig config)
    : config_(std::move(config)),
      count_(std::min({config_.shard.count, size_of(config_.mappings.ports), size_of(config_.mappings.identifiers)})),
      ports_(config_.mappings.ports, count_),
      identifiers_(config_.mappings.identifiers, count_) {
  for (std::uint32_t shard = 0; shard < config_.shard.count; ++shard) {
    tables_.emplace_back(settings_of(std::min(shard, count_ - 1)));  // one for each, used or not
  }
}

std::uint32_t Shards::part_of(std::uint32_t limit, std::uint32_t shard) const {
  return limit == 0 ? 0 : static_cast<std::uint32_t>(nf::Shard{shard, count()}.part_of(limit));
}

MappingTable::Settings Shards::settings_of(std::uint32_t shard) const {
  MappingTable::Settings settings = config_.mappings;
  settings.ports = ports_.part(shard);
  settings.identifiers = identifiers_.part(shard);
  settings.max_mappings = part_of(settings.max_mappings, shard);
  settings.max_half_open = part_of(settings.max_half_open, shard);
  settings.further_sessions = part_of(settings.further_sessions, shard);
  return settings;
}

void Shards::move_port(MappingTable::ExternalPort const& port, std::uint32_t shard) {
  if (moved_ == nullptr) {
    moved_ = std::make_shared<MovedPorts>();
  }
  if (const std::optional<std::uint32_t> owner = part_with(port.endpoint)) {
    table(*owner).mappings.give_away(port);
  }
  moved_->add(port.endpoint, shard);
}

std::size_t Shards::memory_bytes() const {
  std::size_t bytes = moved_ == nullptr ? 0 : moved_->memory_bytes();
  for (Table const& table : tables_) {
    bytes += table.mappings.memory_bytes();
  }
  return bytes;
}

}  // namespace catena::nat
