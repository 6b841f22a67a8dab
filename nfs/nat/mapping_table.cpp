// SPDX-License-Identifier: Apache-2.0
#include "mapping_table.hpp"

#include <catena/core/time.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

namespace catena::nat {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

/// Starts a saved state. States without it began with the number of external addresses.
constexpr std::uint64_t kStateVersion = 0x4E41'5400'0000'0002;

}  // namespace

MappingTable::MappingTable(Settings const& settings)
    : settings_(settings),
      by_internal_(settings.max_mappings),
      by_external_(settings.max_mappings),
      sessions_({settings.max_mappings, settings.further_sessions, settings.max_sessions_per_mapping},
                {settings.timeouts.udp, settings.timeouts.icmp, settings.timeouts.tcp_opening,
                 settings.timeouts.tcp_established, settings.timeouts.tcp_closing}),
      half_open_(settings.max_mappings, settings.external_addresses.size()) {
  pools_.reserve(settings.external_addresses.size() * kProtocols);
  for (std::size_t i = 0; i < settings.external_addresses.size(); ++i) {
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(settings.ports.first, settings.ports.last);
    pools_.emplace_back(settings.identifiers.first, settings.identifiers.last);
  }
  for (std::uint32_t i = 0; i < settings.max_mappings; ++i) {
    sessions_.mapping(i).first.newer = i + 1 < settings.max_mappings ? i + 1 : kNone;
  }
}

void MappingTable::start_second(std::uint64_t now_ns) {
  const std::uint64_t second = now_ns / kNsPerSecond;
  if (!has_started_) {
    has_started_ = true;
    start_s_ = second;
  }
  next_second_ns_ = (second + 1) * kNsPerSecond;
  // it ends 136 years after the start: stamps of hostile captures go further
  const auto seconds = static_cast<std::uint32_t>(std::min<std::uint64_t>(second - start_s_, kNoLimit));
  may_expire_ = may_expire_ || seconds != sessions_.now_s();
  sessions_.set_time(seconds);
}

/// Removes up to `limit` expired sessions, the oldest of each list first, and the mappings without another one.
void MappingTable::expire(std::uint32_t limit) {
  for (; may_expire_ && limit > 0; --limit) {
    const std::uint32_t position = sessions_.expire_one();
    if (position == kNone) {
      may_expire_ = false;
      return;
    }
    if (sessions_.has_live(position)) {
      set_half_open(position, sessions_.is_half_open(position));
    } else {
      release(position);
      ++counts_.expired;
    }
  }
}

Mapping const* MappingTable::create(Endpoint const& internal, Remote const& remote) {
  const std::uint32_t number = external_number_of(internal.address);
  PortPool& pool = pool_of(number, internal.protocol);
  if (is_full() || pool.free_count() == 0) {
    expire(kNoLimit);
  }
  if (!make_room(number, internal.protocol)) {
    return nullptr;
  }
  const std::optional<std::uint16_t> port = pool.take(internal.port);
  if (!port) {
    return nullptr;
  }
  const std::uint32_t position = add(internal, *port);
  if (internal.protocol == Protocol::kTcp) {
    sessions_.make(position, remote);
  } else {
    sessions_.make_shared(position);
  }
  ++counts_.created;
  counts_.peak = std::max(counts_.peak, counts_.live);
  return &sessions_.mapping(position);
}

std::uint32_t MappingTable::add(Endpoint const& internal, std::uint16_t external_port) {
  const std::uint32_t position = first_free_;
  Mapping& mapping = sessions_.mapping(position);
  first_free_ = mapping.first.newer;
  mapping = {.first = {},
             .internal_address = internal.address,
             .internal_port = internal.port,
             .external_port = external_port};
  mapping.first.protocol = internal.protocol;
  by_internal_.insert(hash(internal), position);
  by_external_.insert(hash(external_of(mapping)), position);
  set_half_open(position, internal.protocol == Protocol::kTcp);
  ++counts_.live;
  return position;
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
  state.put(sessions_.now_s());
  state.put(counts_.peak);
  state.put(counts_.created);
  state.put(counts_.expired);
  state.put(counts_.half_open_evicted);
  state.put(sessions_.counts().replaced);
  state.put(sessions_.counts().shared);
  state.put(sessions_.counts().live);
  state.reserve(sessions_.counts().live * sizeof(Session) + counts_.live * sizeof(Mapping) / 4);
  for (const Timer timer : {Timer::kTcpEstablished, Timer::kTcpClosing, Timer::kTcpOpening}) {
    sessions_.for_each(timer, [&state](Mapping const& mapping, Session const& session) {
      save_ends(mapping, state);
      state.put(session.remote_address);
      state.put(session.remote_port);
      state.put(session.used_s);
      state.put(static_cast<std::uint8_t>(session.tcp_state));
      state.put(static_cast<std::uint8_t>(session.kind));
      session.windows.save(state);
    });
  }
  for (const Timer timer : {Timer::kUdp, Timer::kIcmp}) {
    std::uint64_t count = 0;
    sessions_.for_each(timer, [&count](Mapping const&, Session const&) { ++count; });
    state.put(count);
    sessions_.for_each(timer, [&state](Mapping const& mapping, Session const& session) {
      save_ends(mapping, state);
      state.put(session.used_s);
    });
  }
}

/// Reads the ends of a mapping and adds it. nullopt if that cannot be; `may_exist`: it may be known with the same ends.
std::optional<std::uint32_t> MappingTable::load_mapping(nf::StateReader& state, Protocol protocol, bool may_exist) {
  const auto address = state.get<std::uint32_t>();
  const auto port = state.get<std::uint16_t>();
  const auto external_port = state.get<std::uint16_t>();
  if (!state.is_sound()) {
    return std::nullopt;
  }
  const Endpoint internal{address, port, protocol};
  const std::uint32_t known = by_internal_.find(
      hash(internal), [&](std::uint32_t position) { return sessions_.mapping(position).internal() == internal; });
  if (known != kNone) {
    return may_exist && sessions_.mapping(known).external_port == external_port ? std::optional(known) : std::nullopt;
  }
  if (first_free_ == kNone || pool_of(external_number_of(address), protocol).take(external_port) != external_port) {
    return std::nullopt;
  }
  return add(internal, external_port);
}

bool MappingTable::load_session(nf::StateReader& state) {
  const std::optional<std::uint32_t> position = load_mapping(state, Protocol::kTcp, true);
  Session session;
  session.remote_address = state.get<std::uint32_t>();
  session.remote_port = state.get<std::uint16_t>();
  session.used_s = state.get<std::uint32_t>();
  const auto tcp_state = state.get<std::uint8_t>();
  const auto kind = state.get<std::uint8_t>();
  session.windows.load(state);
  if (!position || !state.is_sound() || tcp_state > Session::kMaxTcpState || kind > Session::kShared) {
    return false;
  }
  session.set_tcp_state(tcp_state);
  session.kind = static_cast<Session::Kind>(kind);
  if (!sessions_.restore(*position, session)) {
    return false;
  }
  set_half_open(*position, sessions_.is_half_open(*position));
  return true;
}

/// Of UDP or ICMP.
bool MappingTable::load_idle(nf::StateReader& state, Protocol protocol) {
  const std::optional<std::uint32_t> position = load_mapping(state, protocol, false);
  Session session;
  session.used_s = state.get<std::uint32_t>();
  session.kind = Session::kShared;
  session.protocol = protocol;
  return position && state.is_sound() && sessions_.restore(*position, session);
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
  sessions_.set_time(state.get<std::uint32_t>());
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

/// A session of another table.
struct MappingTable::MovedSession {
  Mapping const* mapping;
  Session const* session;
  std::uint32_t used_s;  ///< in the seconds of this table
};

/// Limits are divided evenly among tables, and hosts by chance: what lives already has to fit.
void MappingTable::make_room_for(std::span<const std::vector<MovedSession>> sessions) {
  std::unordered_set<Mapping const*> mappings;
  std::size_t count = 0;
  for (std::vector<MovedSession> const& of_timer : sessions) {
    count += of_timer.size();
    for (MovedSession const& each : of_timer) {
      mappings.insert(each.mapping);
    }
  }
  Settings settings = settings_;
  Settings larger = settings_;
  larger.max_mappings = std::max(larger.max_mappings, static_cast<std::uint32_t>(mappings.size()));
  larger.further_sessions = std::max(larger.further_sessions, static_cast<std::uint32_t>(count - mappings.size()));
  if (larger != settings) {
    std::vector<PortPool> pools = std::move(pools_);  // others may have taken ports from them
    *this = MappingTable(larger);
    pools_ = std::move(pools);
    settings_ = std::move(settings);  // the space is for these mappings, and not for new ones
  }
}

std::vector<MappingTable::ExternalPort> MappingTable::take_over(std::span<MappingTable const* const> before,
                                                                std::function<bool(std::uint32_t)> const& is_mine) {
  constexpr std::array kInOrder{Timer::kTcpEstablished, Timer::kTcpClosing, Timer::kTcpOpening, Timer::kUdp,
                                Timer::kIcmp};
  std::uint64_t start_s = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t now_s = 0;
  for (MappingTable const* const table : before) {
    if (table->has_started_) {
      start_s = std::min(start_s, table->start_s_);
      now_s = std::max(now_s, table->start_s_ + table->sessions_.now_s());
    }
  }
  std::array<std::vector<MovedSession>, kTimers> sessions;  // by kInOrder
  for (std::size_t i = 0; i < kInOrder.size(); ++i) {
    for (MappingTable const* const table : before) {
      table->sessions_.for_each(kInOrder[i], [&](Mapping const& mapping, Session const& session) {
        if (is_mine(mapping.internal_address)) {
          const std::uint64_t used_s = table->start_s_ + session.used_s - start_s;
          sessions[i].push_back(
              {&mapping, &session, static_cast<std::uint32_t>(std::min<std::uint64_t>(used_s, kNoLimit))});
        }
      });
    }
    std::ranges::stable_sort(sessions[i], {}, &MovedSession::used_s);
  }
  make_room_for(sessions);
  if (now_s > 0) {
    has_started_ = true;
    start_s_ = start_s;
    sessions_.set_time(static_cast<std::uint32_t>(std::min<std::uint64_t>(now_s - start_s, kNoLimit)));
    may_expire_ = true;
  }
  std::vector<ExternalPort> moved;
  for (std::vector<MovedSession> const& of_timer : sessions) {
    for (MovedSession const& each : of_timer) {
      const Endpoint internal = each.mapping->internal();
      std::uint32_t position = by_internal_.find(
          hash(internal), [&](std::uint32_t at) { return sessions_.mapping(at).internal() == internal; });
      if (position == kNone) {
        const std::uint32_t number = external_number_of(internal.address);
        if (!pool_of(number, internal.protocol).take_exactly(each.mapping->external_port)) {
          moved.push_back({external_of(*each.mapping), number});
        }
        position = add(internal, each.mapping->external_port);
      }
      Session session = *each.session;
      session.used_s = each.used_s;
      session.is_half_open = false;
      sessions_.restore(position, session);
      if (internal.protocol == Protocol::kTcp) {
        set_half_open(position, sessions_.is_half_open(position));
      }
    }
  }
  counts_.peak = counts_.live;
  return moved;
}

void MappingTable::add_counts(MappingTable const& before) {
  counts_.peak += before.counts_.peak - before.counts_.live;  // who took over a mapping has counted it
  counts_.created += before.counts_.created;
  counts_.expired += before.counts_.expired;
  counts_.half_open_evicted += before.counts_.half_open_evicted;
  SessionTable::Counts sessions = sessions_.counts();
  sessions.replaced += before.sessions_.counts().replaced;
  sessions.shared += before.sessions_.counts().shared;
  sessions_.restore(sessions);
}

/// Whether there is memory and a port for a new mapping, after half open ones have given way to it where they can.
bool MappingTable::make_room(std::uint32_t external_number, Protocol protocol) {
  if (pool_of(external_number, protocol).free_count() == 0) {
    const std::uint32_t oldest = half_open_.oldest_of(external_number);
    if (protocol != Protocol::kTcp || oldest == kNone) {
      return false;
    }
    evict(oldest);
  }
  if (is_full()) {
    if (half_open_.oldest() == kNone) {
      return false;
    }
    evict(half_open_.oldest());
  }
  while (protocol == Protocol::kTcp && half_open_.count() >= settings_.max_half_open) {
    evict(half_open_.oldest());  // several, if connections to new peers have made mappings half open again
  }
  return true;
}

void MappingTable::evict(std::uint32_t position) {
  release(position);
  ++counts_.half_open_evicted;
}

void MappingTable::release(std::uint32_t position) {
  Mapping& mapping = sessions_.mapping(position);
  set_half_open(position, false);
  sessions_.release(position);
  by_internal_.erase(hash(mapping.internal()), position,
                     [this](std::uint32_t other) { return hash(sessions_.mapping(other).internal()); });
  by_external_.erase(hash(external_of(mapping)), position,
                     [this](std::uint32_t other) { return hash(external_of(sessions_.mapping(other))); });
  pool_of(external_number_of(mapping.internal_address), mapping.first.protocol).give_back(mapping.external_port);
  mapping.first.newer = first_free_;
  first_free_ = position;
  --counts_.live;
}

void MappingTable::set_half_open(std::uint32_t position, bool is_half_open) {
  Mapping& mapping = sessions_.mapping(position);
  if (is_half_open == mapping.first.is_half_open) {
    return;
  }
  mapping.first.is_half_open = is_half_open;
  const std::uint32_t number = external_number_of(mapping.internal_address);
  if (is_half_open) {
    half_open_.append(position, number, sessions_.now_s());
  } else {
    half_open_.remove(position, number);
  }
}

void MappingTable::note_other_segment(Mapping const& mapping, Side from, Remote const& remote, Segment const& segment) {
  const std::uint32_t position = sessions_.position_of(mapping);
  std::uint32_t session = sessions_.find(position, remote);
  const bool is_new = session == kNone;
  if (is_new) {
    // an outsider may send anything, and its host refuses with a RST
    if (from == Side::kOutside || (segment.flags & nf::kTcpRst) != 0) {
      return;
    }
    session = sessions_.make(position, remote);
  }
  if (sessions_.note(session, from, segment) || is_new) {
    set_half_open(position, sessions_.is_half_open(position));
  }
  if (mapping.first.is_half_open && from == Side::kInside) {
    half_open_.use(position, external_number_of(mapping.internal_address), sessions_.now_s());
  }
}

std::size_t MappingTable::memory_bytes() const {
  return by_internal_.memory_bytes() + by_external_.memory_bytes() + pools_.size() * sizeof(PortPool) +
         sessions_.memory_bytes() + half_open_.memory_bytes() +
         settings_.external_addresses.size() * sizeof settings_.external_addresses[0];
}

}  // namespace catena::nat
