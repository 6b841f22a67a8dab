// SPDX-License-Identifier: Apache-2.0
#include "mapping_table.hpp"

#include <catena/core/time.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace catena::nat {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

/// Starts a saved state. States without it began with the number of external addresses.
constexpr std::uint64_t kStateVersion = 0x4E41'5400'0000'0002;

}  // namespace

MappingTable::MappingTable(Settings const& settings)
    : settings_(settings),
      mappings_(settings.max_mappings),
      by_internal_(settings.max_mappings),
      by_external_(settings.max_mappings),
      half_open_(settings.external_addresses.size()),
      sessions_({settings.max_mappings, settings.further_sessions, settings.max_sessions_per_mapping},
                {settings.timeouts.tcp_opening, settings.timeouts.tcp_established, settings.timeouts.tcp_closing}) {
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
    sessions_.set_time(seconds);
    may_expire_ = true;
  }
  expire(limit);
}

/// Removes up to `limit` expired mappings and sessions, the oldest of each list first.
void MappingTable::expire(std::uint32_t limit) {
  if (!may_expire_) {
    return;
  }
  for (const Protocol protocol : {Protocol::kUdp, Protocol::kIcmp}) {
    List const& list = list_of(protocol);
    while (list.oldest != kNone && has_expired(mappings_[list.oldest])) {
      if (limit-- == 0) {
        return;
      }
      release(list.oldest);
      ++counts_.expired;
    }
  }
  for (; limit > 0; --limit) {
    const std::uint32_t position = sessions_.expire_one();
    if (position == kNone) {
      may_expire_ = false;
      return;
    }
    if (sessions_.has_live(position)) {
      update_half_open(position);
    } else {
      release(position);
      ++counts_.expired;
    }
  }
}

Mapping const* MappingTable::live_or_null(std::uint32_t position) {
  if (position == kNone) {
    return nullptr;
  }
  Mapping const& mapping = mappings_[position];
  if (mapping.protocol == Protocol::kTcp ? sessions_.has_live(position) : !has_expired(mapping)) {
    return &mapping;
  }
  release(position);
  ++counts_.expired;
  return nullptr;
}

Mapping const* MappingTable::find_internal(Endpoint const& endpoint) {
  return live_or_null(by_internal_.find(
      hash(endpoint), [&](std::uint32_t position) { return mappings_[position].internal() == endpoint; }));
}

Mapping const* MappingTable::find_external(Endpoint const& endpoint) {
  return live_or_null(by_external_.find(
      hash(endpoint), [&](std::uint32_t position) { return external_of(mappings_[position]) == endpoint; }));
}

Mapping const* MappingTable::create(Endpoint const& internal, Remote const& remote) {
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
  Mapping const& mapping = add(internal, number, *port, now_s_);
  if (internal.protocol == Protocol::kTcp) {
    sessions_.make(position_of(mapping), remote);
  }
  ++counts_.created;
  counts_.peak = std::max(counts_.peak, counts_.live);
  return &mapping;
}

Mapping& MappingTable::add(Endpoint const& internal, std::uint32_t external_number, std::uint16_t external_port,
                           std::uint32_t used_s) {
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
             .is_half_open = internal.protocol == Protocol::kTcp};
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
       {settings.max_mappings, settings.max_half_open, settings.further_sessions, settings.max_sessions_per_mapping,
        timeouts.udp, timeouts.tcp_established, timeouts.tcp_opening, timeouts.tcp_closing, timeouts.icmp}) {
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
       {&settings.max_mappings, &settings.max_half_open, &settings.further_sessions, &settings.max_sessions_per_mapping,
        &timeouts.udp, &timeouts.tcp_established, &timeouts.tcp_opening, &timeouts.tcp_closing, &timeouts.icmp}) {
    *number = state.get<std::uint32_t>();
  }
  return settings;
}

void save_ends(Mapping const& mapping, nf::StateWriter& state) {
  state.put(mapping.internal_address);
  state.put(mapping.internal_port);
  state.put(mapping.external_port);
}

}  // namespace

/// Mappings and sessions by list, the one that was used longest ago first: so they are in each list in that order
/// again. A TCP mapping is saved with each of its sessions.
void MappingTable::save(nf::StateWriter& state) const {
  state.put(kStateVersion);
  save_settings(settings_, state);
  state.put(has_started_);
  state.put(start_s_);
  state.put(now_s_);
  state.put(counts_.peak);
  state.put(counts_.created);
  state.put(counts_.expired);
  state.put(counts_.half_open_evicted);
  state.put(sessions_.counts().replaced);
  state.put(sessions_.counts().shared);
  state.put(sessions_.counts().live);
  state.reserve(sessions_.counts().live * sizeof(Session) + counts_.live * sizeof(Mapping) / 2);
  sessions_.for_each([this, &state](Session const& session) {
    save_ends(mappings_[session.mapping], state);
    state.put(session.remote_address);
    state.put(session.remote_port);
    state.put(session.used_s);
    state.put(session.tcp_state);
    state.put(static_cast<std::uint8_t>(session.kind));
    session.windows.save(state);
  });
  for (const Protocol protocol : {Protocol::kUdp, Protocol::kIcmp}) {
    std::uint64_t count = 0;
    for (std::uint32_t position = list_of(protocol).oldest; position != kNone; position = mappings_[position].newer) {
      ++count;
    }
    state.put(count);
    for (std::uint32_t position = list_of(protocol).oldest; position != kNone; position = mappings_[position].newer) {
      save_ends(mappings_[position], state);
      state.put(mappings_[position].used_s);
    }
  }
}

/// Reads the ends of a mapping and adds it. Null if that cannot be; `may_exist`: it may be known with the same ends.
Mapping const* MappingTable::load_mapping(nf::StateReader& state, Protocol protocol, bool may_exist) {
  const auto address = state.get<std::uint32_t>();
  const auto port = state.get<std::uint16_t>();
  const auto external_port = state.get<std::uint16_t>();
  if (!state.is_sound()) {
    return nullptr;
  }
  const Endpoint internal{address, port, protocol};
  const std::uint32_t known = by_internal_.find(
      hash(internal), [&](std::uint32_t position) { return mappings_[position].internal() == internal; });
  if (known != kNone) {
    return may_exist && mappings_[known].external_port == external_port ? &mappings_[known] : nullptr;
  }
  const std::uint32_t number = external_number_of(address);
  if (first_free_ == kNone || pool_of(number, protocol).take(external_port) != external_port) {
    return nullptr;
  }
  return &add(internal, number, external_port, now_s_);
}

bool MappingTable::load_session(nf::StateReader& state) {
  Mapping const* mapping = load_mapping(state, Protocol::kTcp, true);
  Session session;
  session.remote_address = state.get<std::uint32_t>();
  session.remote_port = state.get<std::uint16_t>();
  session.used_s = state.get<std::uint32_t>();
  session.tcp_state = state.get<std::uint8_t>();
  session.kind = static_cast<Session::Kind>(state.get<std::uint8_t>());
  session.windows.load(state);
  if (mapping == nullptr || !state.is_sound() || !sessions_.restore(position_of(*mapping), session)) {
    return false;
  }
  update_half_open(position_of(*mapping));
  return true;
}

/// Of UDP or ICMP.
bool MappingTable::load_idle(nf::StateReader& state, Protocol protocol) {
  const std::uint32_t newest = list_of(protocol).newest;
  Mapping const* mapping = load_mapping(state, protocol, false);
  const auto used_s = state.get<std::uint32_t>();
  if (mapping == nullptr || !state.is_sound() || used_s > now_s_ ||
      (newest != kNone && mappings_[newest].used_s > used_s)) {
    return false;
  }
  mappings_[position_of(*mapping)].used_s = used_s;
  return true;
}

Status MappingTable::load(nf::StateReader& state) {
  Status damaged = absl::DataLossError("no table of mappings of this version");
  if (state.get<std::uint64_t>() != kStateVersion) {
    return damaged;
  }
  const Settings of_state = load_settings(state);
  if (state.is_sound() && of_state != settings_) {
    return absl::FailedPreconditionError("its external addresses, ports, limits or time-outs have changed");
  }
  has_started_ = state.get<bool>();
  start_s_ = state.get<std::uint64_t>();
  now_s_ = state.get<std::uint32_t>();
  sessions_.set_time(now_s_);
  may_expire_ = true;
  counts_.peak = state.get<std::uint64_t>();
  counts_.created = state.get<std::uint64_t>();
  counts_.expired = state.get<std::uint64_t>();
  counts_.half_open_evicted = state.get<std::uint64_t>();
  const auto replaced = state.get<std::uint64_t>();
  const auto shared = state.get<std::uint64_t>();
  sessions_.restore(SessionTable::Counts{.replaced = replaced, .shared = shared});
  for (auto sessions = state.get<std::uint64_t>(); sessions > 0; --sessions) {
    if (!load_session(state)) {
      return damaged;
    }
  }
  for (const Protocol protocol : {Protocol::kUdp, Protocol::kIcmp}) {
    for (auto mappings = state.get<std::uint64_t>(); mappings > 0; --mappings) {
      if (!load_idle(state, protocol)) {
        return damaged;
      }
    }
  }
  return state.is_sound() ? absl::OkStatus() : damaged;
}

/// Whether there is memory and a port for a new mapping, after half open ones have given way to it where they can.
bool MappingTable::make_room(std::uint32_t external_number, Protocol protocol) {
  List const& half_open = list_of(Protocol::kTcp);
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
  while (protocol == Protocol::kTcp && counts_.half_open >= settings_.max_half_open) {
    evict(half_open.oldest);  // several, if connections to new peers have made mappings half open again
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
  if (mapping.protocol == Protocol::kTcp) {
    sessions_.release(position);
  }
  by_internal_.erase(hash(mapping.internal()), position,
                     [this](std::uint32_t other) { return hash(mappings_[other].internal()); });
  by_external_.erase(hash(external_of(mapping)), position,
                     [this](std::uint32_t other) { return hash(external_of(mappings_[other])); });
  pool_of(mapping.external_number, mapping.protocol).give_back(mapping.external_port);
  mapping.newer = first_free_;
  first_free_ = position;
  --counts_.live;
}

/// Puts the mapping at the end of its list. A TCP mapping beyond its handshakes is in no list.
void MappingTable::append(std::uint32_t position) {
  Mapping const& mapping = mappings_[position];
  if (mapping.protocol != Protocol::kTcp) {
    list_of(mapping.protocol).append(mappings_, position);
  } else if (mapping.is_half_open) {
    list_of(Protocol::kTcp).append(mappings_, position);
    half_open_[mapping.external_number].append(mappings_, position);
    ++counts_.half_open;
  }
}

void MappingTable::unlink(std::uint32_t position) {
  Mapping const& mapping = mappings_[position];
  if (mapping.protocol != Protocol::kTcp) {
    list_of(mapping.protocol).unlink(mappings_, position);
  } else if (mapping.is_half_open) {
    list_of(Protocol::kTcp).unlink(mappings_, position);
    half_open_[mapping.external_number].unlink(mappings_, position);
    --counts_.half_open;
  }
}

/// Within a second the order of a list does not change, so then the list is left alone: the neighbours of the mapping
/// are far away in memory.
void MappingTable::use(std::uint32_t position) {
  Mapping& mapping = mappings_[position];
  if (mapping.used_s == now_s_) {
    return;
  }
  unlink(position);
  mapping.used_s = now_s_;
  append(position);
}

/// After a change of its sessions.
void MappingTable::update_half_open(std::uint32_t position) {
  Mapping& mapping = mappings_[position];
  const bool is_half_open = sessions_.is_half_open(position);
  if (is_half_open == mapping.is_half_open) {
    return;
  }
  unlink(position);
  mapping.is_half_open = is_half_open;
  mapping.used_s = now_s_;
  append(position);
}

void MappingTable::note_outbound(Mapping const& mapping) { use(position_of(mapping)); }

void MappingTable::note_segment(Mapping const& mapping, Side from, Remote const& remote, Segment const& segment) {
  const std::uint32_t position = position_of(mapping);
  Session* session = sessions_.find(position, remote);
  const bool is_new = session == nullptr;
  if (is_new) {
    // an outsider may send anything, and its host refuses with a RST
    if (from == Side::kOutside || (segment.flags & nf::kTcpRst) != 0) {
      return;
    }
    session = &sessions_.make(position, remote);
  }
  if (sessions_.note(*session, from, segment) || is_new) {
    update_half_open(position);
  }
  if (mapping.is_half_open && from == Side::kInside) {
    use(position);
  }
}

void MappingTable::prefetch_neighbours(std::uint32_t guess) const {
  Mapping const& mapping = mappings_[guess];
  if (mapping.protocol == Protocol::kTcp) {
    sessions_.prefetch_neighbours(guess);
  }
  if (mapping.used_s == now_s_ || (mapping.protocol == Protocol::kTcp && !mapping.is_half_open)) {
    return;  // it will stay where it is
  }
  for (const std::uint32_t neighbour : {mapping.older, mapping.newer}) {
    if (neighbour != kNone) {
      __builtin_prefetch(&mappings_[neighbour]);
    }
  }
}

std::size_t MappingTable::memory_bytes() const {
  return mappings_.size() * sizeof(Mapping) + by_internal_.memory_bytes() + by_external_.memory_bytes() +
         pools_.size() * sizeof(PortPool) + half_open_.size() * sizeof(HalfOpenList) + sessions_.memory_bytes() +
         settings_.external_addresses.size() * sizeof settings_.external_addresses[0];
}

}  // namespace catena::nat
