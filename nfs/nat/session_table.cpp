// SPDX-License-Identifier: Apache-2.0
#include "session_table.hpp"

namespace catena::nat {
namespace {

constexpr std::uint8_t kMaxState = 0x1F;

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
  const bool is_plain = (segment.flags & (nf::kTcpSyn | nf::kTcpFin | nf::kTcpRst)) == 0;
  if (is_plain && session.windows.has_started()) [[likely]] {
    return session.windows.accept(from, segment) ? nf::next_tcp_state(state, {0, is_inside}) : state;
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
    : limits_(limits), timeouts_(timeouts), sessions_(std::size_t{limits.mappings} + limits.further) {
  for (std::uint32_t i = limits.further; i > 0; --i) {
    sessions_[limits.mappings + i - 1].newer = first_free_;
    first_free_ = limits.mappings + i - 1;
  }
}

Session* SessionTable::find(std::uint32_t mapping, Remote const& remote) {
  for (std::uint32_t at = mapping; at != kNone; at = sessions_[at].next) {
    if (sessions_[at].is_with(remote) && !has_expired(sessions_[at])) {
      return &sessions_[at];
    }
  }
  return nullptr;
}

Session& SessionTable::make(std::uint32_t mapping, Remote const& remote) {
  const std::uint32_t position = place_for(mapping);
  if (sessions_[position].kind == Session::kShared) {
    return sessions_[position];
  }
  Session session;
  session.remote_address = remote.address;
  session.remote_port = remote.port;
  session.kind = Session::kPeer;
  session.used_s = now_s_;
  return insert(position, mapping, session);
}

/// An entry without a session, or the shared one.
std::uint32_t SessionTable::place_for(std::uint32_t mapping) {
  std::uint32_t count = 0;
  std::uint32_t shared = kNone;
  std::uint32_t oldest = kNone;    // of the established ones
  std::uint32_t yielding = kNone;  // the oldest of the others
  const auto keep_older = [this](std::uint32_t& older, std::uint32_t at) {
    older = older == kNone || sessions_[at].used_s < sessions_[older].used_s ? at : older;
  };
  for (std::uint32_t at = mapping; at != kNone; at = sessions_[at].next) {
    Session const& session = sessions_[at];
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
  if (sessions_[mapping].kind == Session::kUnused) {
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
    sessions_[oldest].kind = Session::kShared;
    sessions_[oldest].tcp_state = Session::kOpened;
    shared = oldest;
  }
  return shared;
}

/// A free entry, after the first one of the mapping. Precondition: one is free.
std::uint32_t SessionTable::take_entry(std::uint32_t mapping) {
  const std::uint32_t position = first_free_;
  first_free_ = sessions_[position].newer;
  sessions_[position].next = sessions_[mapping].next;
  sessions_[mapping].next = position;
  return position;
}

/// Precondition: the entry belongs to the mapping and has no session.
Session& SessionTable::insert(std::uint32_t position, std::uint32_t mapping, Session const& session) {
  const std::uint32_t next = sessions_[position].next;
  sessions_[position] = session;
  sessions_[position].next = next;
  sessions_[position].mapping = mapping;
  list(session.phase()).append(sessions_, position);
  ++counts_.live;
  return sessions_[position];
}

/// Ends a session; its entry stays with the mapping.
void SessionTable::remove(std::uint32_t position) {
  list(sessions_[position].phase()).unlink(sessions_, position);
  sessions_[position].kind = Session::kUnused;
  --counts_.live;
}

/// Precondition: the entry has no session.
void SessionTable::give_back(std::uint32_t position) {
  const std::uint32_t mapping = sessions_[position].mapping;
  if (position == mapping) {
    return;
  }
  std::uint32_t before = mapping;
  while (sessions_[before].next != position) {
    before = sessions_[before].next;
  }
  sessions_[before].next = sessions_[position].next;
  sessions_[position].newer = first_free_;
  first_free_ = position;
}

bool SessionTable::note(Session& session, Side from, Segment const& segment) {
  const std::uint8_t state = state_after(session, from, segment);
  const bool changes_phase = nf::tcp_phase(state) != session.phase();
  if (changes_phase || (from == Side::kInside && session.used_s != now_s_)) {
    const std::uint32_t position = position_of(session);
    list(session.phase()).unlink(sessions_, position);
    session.used_s = now_s_;
    list(nf::tcp_phase(state)).append(sessions_, position);
  }
  if (session.tcp_state != state) {
    session.tcp_state = state;
  }
  return changes_phase;
}

bool SessionTable::has_live(std::uint32_t mapping) const {
  for (std::uint32_t at = mapping; at != kNone; at = sessions_[at].next) {
    if (sessions_[at].kind != Session::kUnused && !has_expired(sessions_[at])) {
      return true;
    }
  }
  return false;
}

bool SessionTable::is_half_open(std::uint32_t mapping) const {
  for (std::uint32_t at = mapping; at != kNone; at = sessions_[at].next) {
    if (sessions_[at].kind != Session::kUnused && sessions_[at].phase() != nf::TcpPhase::kOpening) {
      return false;
    }
  }
  return true;
}

void SessionTable::release(std::uint32_t mapping) {
  for (std::uint32_t at = mapping; at != kNone;) {
    const std::uint32_t next = sessions_[at].next;
    if (sessions_[at].kind != Session::kUnused) {
      remove(at);
    }
    if (at != mapping) {
      sessions_[at].newer = first_free_;
      first_free_ = at;
    }
    at = next;
  }
  sessions_[mapping].next = kNone;
}

std::uint32_t SessionTable::expire_one() {
  for (List const& list : lists_) {
    const std::uint32_t oldest = list.oldest;
    if (oldest != kNone && has_expired(sessions_[oldest])) {
      remove(oldest);
      give_back(oldest);
      return sessions_[oldest].mapping;
    }
  }
  return kNone;
}

void SessionTable::prefetch_neighbours(std::uint32_t mapping) const {
  Session const& session = sessions_[mapping];
  if (session.used_s == now_s_ || session.kind == Session::kUnused) {
    return;  // it will stay where it is
  }
  for (const std::uint32_t neighbour : {session.older, session.newer}) {
    if (neighbour != kNone) {
      __builtin_prefetch(&sessions_[neighbour]);
    }
  }
}

bool SessionTable::restore(std::uint32_t mapping, Session const& session) {
  std::uint32_t count = 0;
  for (std::uint32_t at = mapping; at != kNone; at = sessions_[at].next) {
    count += sessions_[at].kind == Session::kUnused ? 0U : 1U;
  }
  List const& others = list(session.phase());
  const bool is_in_order = others.newest == kNone || sessions_[others.newest].used_s <= session.used_s;
  const bool is_kind = session.kind == Session::kPeer ||
                       (session.kind == Session::kShared && session.phase() == nf::TcpPhase::kEstablished);
  const bool is_first = sessions_[mapping].kind == Session::kUnused;
  if (!is_in_order || !is_kind || session.tcp_state > kMaxState || session.used_s > now_s_ ||
      count >= limits_.per_mapping || (!is_first && first_free_ == kNone)) {
    return false;
  }
  insert(is_first ? mapping : take_entry(mapping), mapping, session);
  return true;
}

void SessionTable::restore(Counts const& counts) {
  counts_.replaced = counts.replaced;
  counts_.shared = counts.shared;
}

}  // namespace catena::nat
