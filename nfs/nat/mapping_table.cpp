// SPDX-License-Identifier: Apache-2.0
#include "mapping_table.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "tcp_state.hpp"

namespace catena::nat {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

}  // namespace

MappingTable::MappingTable(Settings const& settings)
    : settings_(settings),
      timeouts_{settings.timeouts.udp, settings.timeouts.tcp_established, settings.timeouts.tcp_transitory,
                settings.timeouts.icmp},
      mappings_(settings.max_mappings),
      by_internal_(settings.max_mappings),
      by_external_(settings.max_mappings) {
  pools_.reserve(settings.external_addresses.size() * kProtocols);
  for (std::size_t i = 0; i < settings.external_addresses.size(); ++i) {
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(std::uint16_t{0}, std::uint16_t{65535});
  }
  for (std::uint32_t i = 0; i < mappings_.size(); ++i) {
    mappings_[i].newer = i + 1 < mappings_.size() ? i + 1 : kNone;
  }
}

MappingTable::TimeoutClass MappingTable::class_of(Protocol protocol, std::uint8_t tcp_state) {
  switch (protocol) {
    case Protocol::kUdp:
      return kUdpIdle;
    case Protocol::kIcmp:
      return kIcmpIdle;
    default:
      return is_established(tcp_state) ? kTcpEstablished : kTcpTransitory;
  }
}

/// A function of the address alone, so a host keeps its external address for ever (RFC 4787 REQ-2). The product spreads
/// neighbours and equal host parts alike.
std::uint32_t MappingTable::external_number_of(std::uint32_t internal_address) const {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  const std::uint64_t spread = (internal_address * kGolden) >> 32;
  return static_cast<std::uint32_t>((spread * settings_.external_addresses.size()) >> 32);
}

void MappingTable::advance(std::uint64_t now_ns) {
  if (const std::uint64_t seconds = now_ns / kNsPerSecond; seconds > now_s_) {
    now_s_ = seconds;
    may_expire_ = true;
  }
  expire(kExpirePerCall);
}

/// Removes up to `limit` expired mappings, the oldest of each list first.
void MappingTable::expire(std::uint32_t limit) {
  if (!may_expire_) {
    return;
  }
  for (List const& list : lists_) {
    while (list.oldest != kNone && has_expired(mappings_[list.oldest])) {
      if (limit-- == 0) {
        return;
      }
      release(list.oldest);
    }
  }
  may_expire_ = false;
}

Mapping const* MappingTable::live_or_null(std::uint32_t position) {
  if (position == kNone) {
    return nullptr;
  }
  if (has_expired(mappings_[position])) {
    release(position);
    return nullptr;
  }
  return &mappings_[position];
}

Mapping const* MappingTable::find_internal(Endpoint const& endpoint) {
  return live_or_null(by_internal_.find(
      hash(endpoint), [&](std::uint32_t position) { return mappings_[position].internal() == endpoint; }));
}

Mapping const* MappingTable::find_external(Endpoint const& endpoint) {
  return live_or_null(by_external_.find(
      hash(endpoint), [&](std::uint32_t position) { return mappings_[position].external() == endpoint; }));
}

Mapping const* MappingTable::create(Endpoint const& internal) {
  if (first_free_ == kNone) {
    expire(kNoLimit);
  }
  const std::uint32_t number = external_number_of(internal.address);
  PortPool& pool = pool_of(number, internal.protocol);
  if (pool.free_count() == 0) {
    expire(kNoLimit);
  }
  if (first_free_ == kNone) {
    return nullptr;
  }
  const std::optional<std::uint16_t> port = pool.take(internal.port);
  if (!port) {
    return nullptr;
  }
  const std::uint32_t position = first_free_;
  Mapping& mapping = mappings_[position];
  first_free_ = mapping.newer;
  mapping = {.used_s = now_s_,
             .internal_address = internal.address,
             .external_address = settings_.external_addresses[number],
             .older = kNone,
             .newer = kNone,
             .internal_port = internal.port,
             .external_port = *port,
             .external_number = static_cast<std::uint16_t>(number),
             .protocol = internal.protocol,
             .tcp_state = 0};
  by_internal_.insert(hash(mapping.internal()), position);
  by_external_.insert(hash(mapping.external()), position);
  append(position);
  ++counts_.created;
  counts_.peak = std::max(counts_.peak, ++counts_.live);
  return &mapping;
}

void MappingTable::release(std::uint32_t position) {
  Mapping& mapping = mappings_[position];
  unlink(position);
  by_internal_.erase(hash(mapping.internal()), position,
                     [this](std::uint32_t other) { return hash(mappings_[other].internal()); });
  by_external_.erase(hash(mapping.external()), position,
                     [this](std::uint32_t other) { return hash(mappings_[other].external()); });
  pool_of(mapping.external_number, mapping.protocol).give_back(mapping.external_port);
  mapping.newer = first_free_;
  first_free_ = position;
  ++counts_.expired;
  --counts_.live;
}

void MappingTable::append(std::uint32_t position) {
  List& list = lists_[class_of(mappings_[position])];
  mappings_[position].older = list.newest;
  mappings_[position].newer = kNone;
  (list.newest == kNone ? list.oldest : mappings_[list.newest].newer) = position;
  list.newest = position;
}

void MappingTable::unlink(std::uint32_t position) {
  Mapping const& mapping = mappings_[position];
  List& list = lists_[class_of(mapping)];
  (mapping.older == kNone ? list.oldest : mappings_[mapping.older].newer) = mapping.newer;
  (mapping.newer == kNone ? list.newest : mappings_[mapping.newer].older) = mapping.older;
}

/// Puts the mapping at the end of its list. Within a second that changes nothing, so then the list is left alone: its
/// neighbours are far away in memory.
void MappingTable::use(std::uint32_t position, std::uint8_t tcp_state) {
  Mapping& mapping = mappings_[position];
  if (mapping.used_s == now_s_ && class_of(mapping.protocol, tcp_state) == class_of(mapping)) {
    mapping.tcp_state = tcp_state;
    return;
  }
  unlink(position);
  mapping.tcp_state = tcp_state;
  mapping.used_s = now_s_;
  append(position);
}

void MappingTable::note_outbound(Mapping const& mapping, std::uint8_t tcp_flags) {
  use(position_of(mapping),
      mapping.protocol == Protocol::kTcp ? next_tcp_state(mapping.tcp_state, tcp_flags, true) : mapping.tcp_state);
}

void MappingTable::note_inbound(Mapping const& mapping, std::uint8_t tcp_flags) {
  if (mapping.protocol != Protocol::kTcp) {
    return;
  }
  const std::uint8_t state = next_tcp_state(mapping.tcp_state, tcp_flags, false);
  const std::uint32_t position = position_of(mapping);
  if (is_established(state) != is_established(mapping.tcp_state)) {
    use(position, state);
  } else {
    mappings_[position].tcp_state = state;
  }
}

void MappingTable::prefetch_neighbours(std::uint32_t guess) const {
  Mapping const& mapping = mappings_[guess];
  if (mapping.used_s == now_s_) {
    return;  // it will stay where it is
  }
  prefetched(mapping.older);
  prefetched(mapping.newer);
}

std::size_t MappingTable::memory_bytes() const {
  return mappings_.size() * sizeof(Mapping) + by_internal_.memory_bytes() + by_external_.memory_bytes() +
         pools_.size() * sizeof(PortPool) +
         settings_.external_addresses.size() * sizeof settings_.external_addresses[0];
}

}  // namespace catena::nat
