// SPDX-License-Identifier: Apache-2.0
#include "mapping_table.hpp"

#include <catena/core/time.hpp>
#include <catena/nf/tcp_state.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace catena::nat {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

}  // namespace

MappingTable::MappingTable(Settings const& settings)
    : settings_(settings),
      timeouts_{settings.timeouts.udp, settings.timeouts.tcp_established, settings.timeouts.tcp_opening,
                settings.timeouts.tcp_closing, settings.timeouts.icmp},
      mappings_(settings.max_mappings),
      by_internal_(settings.max_mappings),
      by_external_(settings.max_mappings),
      half_open_(settings.external_addresses.size()) {
  pools_.reserve(settings.external_addresses.size() * kProtocols);
  for (std::size_t i = 0; i < settings.external_addresses.size(); ++i) {
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(settings.identifiers.first, settings.identifiers.last);
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
      break;
  }
  switch (nf::tcp_phase(tcp_state)) {
    case nf::TcpPhase::kOpening:
      return kTcpOpening;
    case nf::TcpPhase::kClosing:
      return kTcpClosing;
    default:
      return kTcpEstablished;
  }
}

/// A function of the address alone, so a host keeps its external address for ever (RFC 4787 REQ-2). The product spreads
/// neighbours and equal host parts alike.
std::uint32_t MappingTable::external_number_of(std::uint32_t internal_address) const {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  const std::uint64_t spread = (internal_address * kGolden) >> 32;
  return static_cast<std::uint32_t>((spread * settings_.external_addresses.size()) >> 32);
}

void MappingTable::advance(std::uint64_t now_ns, std::uint32_t limit) {
  if (!has_started_) {
    has_started_ = true;
    start_s_ = now_ns / kNsPerSecond;
  }
  // it ends 136 years after the start: stamps of hostile captures go further
  const auto seconds = static_cast<std::uint32_t>(std::min<std::uint64_t>(now_ns / kNsPerSecond - start_s_, kNoLimit));
  if (seconds != now_s_) {
    now_s_ = seconds;
    may_expire_ = true;
  }
  expire(limit);
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
      ++counts_.expired;
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
    ++counts_.expired;
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
      hash(endpoint), [&](std::uint32_t position) { return external_of(mappings_[position]) == endpoint; }));
}

Mapping const* MappingTable::create(Endpoint const& internal) {
  const std::uint32_t number = external_number_of(internal.address);
  PortPool& pool = pool_of(number, internal.protocol);
  if (first_free_ == kNone || pool.free_count() == 0) {
    expire(kNoLimit);
  }
  if (!make_room(number, internal.protocol)) {
    return nullptr;
  }
  const std::optional<std::uint16_t> port = pool.take(internal.port);
  if (!port) {
    return nullptr;
  }
  Mapping const& mapping = add(internal, number, *port, now_s_, 0);
  ++counts_.created;
  counts_.peak = std::max(counts_.peak, counts_.live);
  return &mapping;
}

Mapping& MappingTable::add(Endpoint const& internal, std::uint32_t external_number, std::uint16_t external_port,
                           std::uint32_t used_s, std::uint8_t tcp_state) {
  const std::uint32_t position = first_free_;
  Mapping& mapping = mappings_[position];
  first_free_ = mapping.newer;
  mapping = {.used_s = used_s,
             .internal_address = internal.address,
             .older = kNone,
             .newer = kNone,
             .half_open_older = kNone,
             .half_open_newer = kNone,
             .internal_port = internal.port,
             .external_port = external_port,
             .external_number = static_cast<std::uint16_t>(external_number),
             .protocol = internal.protocol,
             .tcp_state = tcp_state};
  by_internal_.insert(hash(mapping.internal()), position);
  by_external_.insert(hash(external_of(mapping)), position);
  append(position);
  ++counts_.live;
  return mapping;
}

namespace {

void save_settings(MappingTable::Settings const& settings, nf::StateWriter& state) {
  state.put(settings.external_addresses.size());
  for (const std::uint32_t address : settings.external_addresses) {
    state.put(address);
  }
  for (PortRange const& range : {settings.ports, settings.identifiers}) {
    state.put(range.first);
    state.put(range.last);
  }
  Timeouts const& timeouts = settings.timeouts;
  for (const std::uint32_t number :
       {settings.max_mappings, settings.max_half_open, timeouts.udp, timeouts.tcp_established, timeouts.tcp_opening,
        timeouts.tcp_closing, timeouts.icmp}) {
    state.put(number);
  }
}

MappingTable::Settings load_settings(nf::StateReader& state) {
  MappingTable::Settings settings;
  const auto addresses = state.get<std::size_t>();
  for (std::size_t i = 0; i < addresses && state.is_sound(); ++i) {
    settings.external_addresses.push_back(state.get<std::uint32_t>());
  }
  for (PortRange* const range : {&settings.ports, &settings.identifiers}) {
    range->first = state.get<std::uint16_t>();
    range->last = state.get<std::uint16_t>();
  }
  Timeouts& timeouts = settings.timeouts;
  for (std::uint32_t* const number :
       {&settings.max_mappings, &settings.max_half_open, &timeouts.udp, &timeouts.tcp_established,
        &timeouts.tcp_opening, &timeouts.tcp_closing, &timeouts.icmp}) {
    *number = state.get<std::uint32_t>();
  }
  return settings;
}

}  // namespace

/// Mappings by list, the one that was used longest ago first: so they are in each list in that order again.
void MappingTable::save(nf::StateWriter& state) const {
  save_settings(settings_, state);
  state.put(has_started_);
  state.put(start_s_);
  state.put(now_s_);
  state.put(counts_.peak);
  state.put(counts_.created);
  state.put(counts_.expired);
  state.put(counts_.half_open_evicted);
  state.put(counts_.live);
  state.reserve(counts_.live * sizeof(Mapping) / 2);
  for (List const& list : lists_) {
    for (std::uint32_t position = list.oldest; position != kNone; position = mappings_[position].newer) {
      Mapping const& mapping = mappings_[position];
      state.put(mapping.used_s);
      state.put(mapping.internal_address);
      state.put(mapping.internal_port);
      state.put(mapping.external_port);
      state.put(static_cast<std::uint8_t>(mapping.protocol));
      state.put(mapping.tcp_state);
    }
  }
}

Status MappingTable::load(nf::StateReader& state) {
  const Settings of_state = load_settings(state);
  if (state.is_sound() && of_state != settings_) {
    return absl::FailedPreconditionError("its external addresses, ports, limits or time-outs have changed");
  }
  has_started_ = state.get<bool>();
  start_s_ = state.get<std::uint64_t>();
  now_s_ = state.get<std::uint32_t>();
  may_expire_ = true;
  counts_.peak = state.get<std::uint64_t>();
  counts_.created = state.get<std::uint64_t>();
  counts_.expired = state.get<std::uint64_t>();
  counts_.half_open_evicted = state.get<std::uint64_t>();
  const auto live = state.get<std::uint64_t>();
  bool can_be = live <= settings_.max_mappings;
  for (std::uint64_t i = 0; i < live && can_be && state.is_sound(); ++i) {
    const auto used_s = state.get<std::uint32_t>();
    const auto address = state.get<std::uint32_t>();
    const auto port = state.get<std::uint16_t>();
    const auto external_port = state.get<std::uint16_t>();
    const auto protocol = state.get<std::uint8_t>();
    const auto tcp_state = state.get<std::uint8_t>();
    if (!state.is_sound() || protocol >= kProtocols || used_s > now_s_) {
      can_be = false;
      break;
    }
    const Endpoint internal{address, port, static_cast<Protocol>(protocol)};
    const bool is_known = by_internal_.find(hash(internal), [&](std::uint32_t position) {
      return mappings_[position].internal() == internal;
    }) != kNone;
    const std::uint32_t number = external_number_of(address);
    List const& list = lists_[class_of(internal.protocol, tcp_state)];
    const bool is_in_order = list.newest == kNone || mappings_[list.newest].used_s <= used_s;
    const auto taken = pool_of(number, internal.protocol).take(external_port);
    can_be = !is_known && is_in_order && taken == external_port && counts_.half_open <= settings_.max_half_open;
    if (can_be) {
      add(internal, number, external_port, used_s, tcp_state);
    }
  }
  return can_be && state.is_sound() && counts_.half_open <= settings_.max_half_open
             ? absl::OkStatus()
             : absl::DataLossError("no table of mappings");
}

/// Whether there is memory and a port for a new mapping, after half open ones have given way to it where they can.
bool MappingTable::make_room(std::uint32_t external_number, Protocol protocol) {
  List const& half_open = lists_[kTcpOpening];
  if (pool_of(external_number, protocol).free_count() == 0) {
    if (protocol != Protocol::kTcp || half_open_[external_number].oldest == kNone) {
      return false;
    }
    evict(half_open_[external_number].oldest);
  }
  if (first_free_ == kNone) {
    if (half_open.oldest == kNone) {
      return false;
    }
    evict(half_open.oldest);
  }
  if (protocol == Protocol::kTcp && counts_.half_open >= settings_.max_half_open) {
    evict(half_open.oldest);
  }
  return true;
}

void MappingTable::evict(std::uint32_t position) {
  release(position);
  ++counts_.half_open_evicted;
}

void MappingTable::release(std::uint32_t position) {
  Mapping& mapping = mappings_[position];
  unlink(position);
  by_internal_.erase(hash(mapping.internal()), position,
                     [this](std::uint32_t other) { return hash(mappings_[other].internal()); });
  by_external_.erase(hash(external_of(mapping)), position,
                     [this](std::uint32_t other) { return hash(external_of(mappings_[other])); });
  pool_of(mapping.external_number, mapping.protocol).give_back(mapping.external_port);
  mapping.newer = first_free_;
  first_free_ = position;
  --counts_.live;
}

void MappingTable::append(std::uint32_t position) {
  const TimeoutClass timeout = class_of(mappings_[position]);
  append_to(lists_[timeout], position, &Mapping::older, &Mapping::newer);
  if (timeout == kTcpOpening) {
    append_to(half_open_[mappings_[position].external_number], position, &Mapping::half_open_older,
              &Mapping::half_open_newer);
    ++counts_.half_open;
  }
}

void MappingTable::unlink(std::uint32_t position) {
  const TimeoutClass timeout = class_of(mappings_[position]);
  unlink_from(lists_[timeout], position, &Mapping::older, &Mapping::newer);
  if (timeout == kTcpOpening) {
    unlink_from(half_open_[mappings_[position].external_number], position, &Mapping::half_open_older,
                &Mapping::half_open_newer);
    --counts_.half_open;
  }
}

void MappingTable::append_to(List& list, std::uint32_t position, Neighbour older, Neighbour newer) {
  mappings_[position].*older = list.newest;
  mappings_[position].*newer = kNone;
  (list.newest == kNone ? list.oldest : mappings_[list.newest].*newer) = position;
  list.newest = position;
}

void MappingTable::unlink_from(List& list, std::uint32_t position, Neighbour older, Neighbour newer) {
  Mapping const& mapping = mappings_[position];
  (mapping.*older == kNone ? list.oldest : mappings_[mapping.*older].*newer) = mapping.*newer;
  (mapping.*newer == kNone ? list.newest : mappings_[mapping.*newer].*older) = mapping.*older;
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

void MappingTable::note_outbound(Mapping const& mapping, Use const& use_by) {
  const bool is_tcp = mapping.protocol == Protocol::kTcp;
  use(position_of(mapping),
      is_tcp ? nf::next_tcp_state(mapping.tcp_state, {use_by.tcp_flags, true, use_by.has_data}) : mapping.tcp_state);
}

void MappingTable::note_inbound(Mapping const& mapping, Use const& use_by) {
  if (mapping.protocol != Protocol::kTcp) {
    return;
  }
  const std::uint8_t state = nf::next_tcp_state(mapping.tcp_state, {use_by.tcp_flags, false, use_by.has_data});
  const std::uint32_t position = position_of(mapping);
  if (nf::tcp_phase(state) != nf::tcp_phase(mapping.tcp_state)) {
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
         pools_.size() * sizeof(PortPool) + half_open_.size() * sizeof(List) +
         settings_.external_addresses.size() * sizeof settings_.external_addresses[0];
}

}  // namespace catena::nat
