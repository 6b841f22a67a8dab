// SPDX-License-Identifier: Apache-2.0
#include "session_table.hpp"

#include <algorithm>

namespace catena::nat {
namespace {

/// Whether a SYN of the inside starts another connection with the same peer. A SYN of an established connection does
/// not: the peer asks back (RFC 5961 section 4). A host that has sent its FIN no longer knows the connection.
bool starts_again(Session const& session, Segment const& syn) {
  if (session.phase() == nf::TcpPhase::kClosing) {
    return true;
  }
  const bool may_differ =
      session.phase() == nf::TcpPhase::kOpening || (session.tcp_state & nf::kTcpFinFromInitiator) != 0;
  return may_differ && (syn.flags & nf::kTcpAck) == 0 && !session.windows.ends_at(syn.end);
}

/// The state of a session after a segment. A segment outside the windows may be forged. For a RST in the window that is
/// not the next one the receiver asks back (RFC 5961 section 3).
std::uint8_t state_after(Session& session, Side from, Segment const& segment) {
  const std::uint8_t state = session.tcp_state;
  const bool is_inside = from == Side::kInside;
  if (session.kind == Session::kShared) {
    return state;
  }
  if (!session.windows.has_started()) {
    if (!is_inside) {
      return state;
    }
    session.windows.start(segment);
    return nf::next_tcp_state(state, {segment.flags, true});
  }
  if ((segment.flags & nf::kTcpSyn) != 0) {
    if (is_inside && starts_again(session, segment)) {
      session.windows.start(segment);
      return 0;
    }
    if (session.phase() != nf::TcpPhase::kOpening) {
      return state;
    }
  }
  if (!session.windows.accept(from, segment)) {
    return state;
  }
  if ((segment.flags & nf::kTcpRst) != 0 && !session.windows.is_next(from, segment.sequence)) {
    return state;
  }
  return nf::next_tcp_state(state, {segment.flags, is_inside});
}

}  // namespace

SessionTable::SessionTable(Limits const& limits, Timeouts const& timeouts)
    : limits_(limits),
      timeouts_(timeouts),
      shortest_timeout_(*std::min_element(timeouts.begin(), timeouts.end())),
      entries_{std::vector<Mapping>(limits.mappings), std::vector<Further>(limits.further),
               std::vector<std::uint32_t>(std::size_t{limits.mappings} + limits.further, kNone)} {
  for (std::uint32_t i = limits.further; i > 0; --i) {
    entries_.further[i - 1].session.newer = first_free_;
    first_free_ = limits.mappings + i - 1;
  }
}

std::uint32_t SessionTable::find(std::uint32_t mapping, Remote const& remote) const {
  for (std::uint32_t at = mapping; at != kNone; at = entries_.next[at]) {
    if (entries_[at].is_with(remote) && !has_expired(entries_[at])) {
      return at;
    }
  }
  return kNone;
}

std::uint32_t SessionTable::make(std::uint32_t mapping, Remote const& remote) {
  const std::uint32_t place = place_for(mapping);
  if (entries_[place].kind == Session::kShared) {
    return place;
  }
  Session session;
  session.remote_address = remote.address;
  session.remote_port = remote.port;
  session.kind = Session::kPeer;
  session.used_s = now_s_;
  insert(place, session);
  return place;
}

void SessionTable::make_shared(std::uint32_t mapping) {
  Session session;
  session.kind = Session::kShared;
  session.protocol = entries_[mapping].protocol;
  session.used_s = now_s_;
  insert(mapping, session);
}

/// The number of an entry without a session, or of the shared one.
std::uint32_t SessionTable::place_for(std::uint32_t mapping) {
  std::uint32_t count = 0;
  std::uint32_t shared = kNone;
  std::uint32_t oldest = kNone;    // of the established ones
  std::uint32_t yielding = kNone;  // the oldest of the others
  const auto keep_older = [this](std::uint32_t& older, std::uint32_t at) {
    older = older == kNone || entries_[at].used_s < entries_[older].used_s ? at : older;
  };
  for (std::uint32_t at = mapping; at != kNone; at = entries_.next[at]) {
    Session const& session = entries_[at];
    if (session.kind == Session::kUnused) {
      continue;
    }
    if (has_expired(session)) {
      remove(at);
      return at;
    }
    ++count;
    if (session.kind == Session::kShared) {
      shared = at;
    } else {
      keep_older(session.phase() == nf::TcpPhase::kEstablished ? oldest : yielding, at);
    }
  }
  if (entries_[mapping].kind == Session::kUnused) {
    return mapping;
  }
  if (count < limits_.per_mapping && first_free_ != kNone) {
    return take_entry(mapping);
  }
  if (yielding != kNone) {
    ++counts_.replaced;
    remove(yielding);
    return yielding;
  }
  if (shared == kNone) {
    ++counts_.shared;
    entries_[oldest].kind = Session::kShared;
    entries_[oldest].tcp_state = Session::kOpened;
    shared = oldest;
  }
  return shared;
}

/// A free further entry, now of the mapping. Precondition: one is free.
std::uint32_t SessionTable::take_entry(std::uint32_t mapping) {
  const std::uint32_t number = first_free_;
  first_free_ = entries_[number].newer;
  entries_.further[number - entries_.mappings.size()].mapping = mapping;
  entries_.next[number] = entries_.next[mapping];
  entries_.next[mapping] = number;
  return number;
}

/// Precondition: the entry belongs to the mapping and has no session.
void SessionTable::insert(std::uint32_t number, Session const& session) {
  Session& entry = entries_[number];
  const bool is_half_open = entry.is_half_open;
  entry = session;
  entry.is_half_open = is_half_open;
  list(timer_of(session)).append(entries_, number);
  counts_.live += session.protocol == Protocol::kTcp ? 1 : 0;
}

/// Ends a session; its entry stays with the mapping.
void SessionTable::remove(std::uint32_t number) {
  Session& session = entries_[number];
  list(timer_of(session)).unlink(entries_, number);
  session.kind = Session::kUnused;
  counts_.live -= session.protocol == Protocol::kTcp ? 1 : 0;
}

/// Precondition: the entry has no session.
void SessionTable::give_back(std::uint32_t number) {
  const std::uint32_t mapping = mapping_of(number);
  if (number == mapping) {
    return;
  }
  std::uint32_t before = mapping;
  while (entries_.next[before] != number) {
    before = entries_.next[before];
  }
  entries_.next[before] = entries_.next[number];
  entries_[number].newer = first_free_;
  first_free_ = number;
}

bool SessionTable::note(std::uint32_t number, Side from, Segment const& segment) {
  Session& session = entries_[number];
  const std::uint8_t state = state_after(session, from, segment);
  const bool changes_phase = nf::tcp_phase(state) != session.phase();
  if (changes_phase || (from == Side::kInside && session.used_s != now_s_)) {
    restart(number, state);
  } else {
    session.set_tcp_state(state);
  }
  return changes_phase;
}

void SessionTable::restart(std::uint32_t number, std::uint8_t tcp_state) {
  Session& session = entries_[number];
  list(timer_of(session)).unlink(entries_, number);
  session.used_s = now_s_;
  session.set_tcp_state(tcp_state);
  list(timer_of(session)).append(entries_, number);
}

bool SessionTable::search_live(std::uint32_t mapping) const {
  for (std::uint32_t at = mapping; at != kNone; at = entries_.next[at]) {
    if (entries_[at].kind != Session::kUnused && !has_expired(entries_[at])) {
      return true;
    }
  }
  return false;
}

bool SessionTable::is_half_open(std::uint32_t mapping) const {
  for (std::uint32_t at = mapping; at != kNone; at = entries_.next[at]) {
    if (entries_[at].kind != Session::kUnused && entries_[at].phase() != nf::TcpPhase::kOpening) {
      return false;
    }
  }
  return true;
}

void SessionTable::release(std::uint32_t mapping) {
  Session const& first = entries_[mapping];
  if (first.kind != Session::kUnused) {
    remove(mapping);
  }
  if (first.protocol != Protocol::kTcp) {
    return;
  }
  for (std::uint32_t at = entries_.next[mapping]; at != kNone; at = entries_.next[at]) {
    if (entries_[at].kind != Session::kUnused) {
      remove(at);
    }
    entries_[at].newer = first_free_;
    first_free_ = at;
  }
  entries_.next[mapping] = kNone;
}

std::uint32_t SessionTable::expire_one() {
  for (List const& list : lists_) {
    const std::uint32_t oldest = list.oldest;
    if (oldest != kNone && has_expired(entries_[oldest])) {
      remove(oldest);
      give_back(oldest);
      return mapping_of(oldest);
    }
  }
  return kNone;
}

bool SessionTable::restore(std::uint32_t mapping, Session const& session) {
  std::uint32_t count = 0;
  for (std::uint32_t at = mapping; at != kNone; at = entries_.next[at]) {
    count += entries_[at].kind == Session::kUnused ? 0U : 1U;
  }
  List const& others = list(timer_of(session));
  const bool is_in_order = others.newest == kNone || entries_[others.newest].used_s <= session.used_s;
  const bool is_kind = session.protocol == Protocol::kTcp
                           ? session.kind == Session::kPeer ||
                                 (session.kind == Session::kShared && session.phase() == nf::TcpPhase::kEstablished)
                           : session.kind == Session::kShared;
  const bool has_windows = session.tcp_state == 0 || session.windows.has_started();
  const bool is_first = entries_[mapping].kind == Session::kUnused;
  if (!is_in_order || !is_kind || !has_windows || session.used_s > now_s_ || count >= limits_.per_mapping ||
      (!is_first && first_free_ == kNone)) {
    return false;
  }
  insert(is_first ? mapping : take_entry(mapping), session);
  return true;
}

void SessionTable::restore(Counts const& counts) {
  counts_.replaced = counts.replaced;
  counts_.shared = counts.shared;
}

std::size_t SessionTable::memory_bytes() const {
  return entries_.mappings.size() * sizeof(Mapping) + entries_.further.size() * sizeof(Further) +
         entries_.next.size() * sizeof entries_.next[0];
}

}  // namespace catena::nat
