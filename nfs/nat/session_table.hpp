// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>
#include <catena/nf/tcp_state.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include "age_list.hpp"
#include "tcp_windows.hpp"

namespace catena::nat {

/// The peer of a TCP connection. Host order.
struct Remote {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  bool operator==(Remote const&) const = default;
};

/// One TCP connection of a mapping.
struct alignas(64) Session {
  /// kUnused: the first entry of a mapping whose first connection has ended. kShared: covers all peers without an
  /// entry; it is established, and only its time-out ends it.
  enum Kind : std::uint8_t { kUnused, kPeer, kShared };
  static constexpr std::uint8_t kOpened = nf::kTcpAnswered | nf::kTcpOpened;

  TcpWindows windows;
  std::uint32_t remote_address = 0;
  std::uint16_t remote_port = 0;
  std::uint8_t tcp_state = 0;  ///< nf::TcpState bits; the initiator is inside
  Kind kind = kUnused;
  std::uint32_t used_s = 0;  ///< start of its time-out, in the table's seconds
  std::uint32_t older = 0;   ///< neighbours in the list of its phase; `newer` also chains free entries
  std::uint32_t newer = 0;
  std::uint32_t next = HashIndex::kNone;  ///< of the same mapping
  std::uint32_t mapping = 0;              ///< position of its mapping

  bool is_with(Remote const& remote) const {
    return kind == kPeer && remote_address == remote.address && remote_port == remote.port;
  }
  nf::TcpPhase phase() const { return nf::tcp_phase(tcp_state); }
};
static_assert(sizeof(Session) == 64);

/// The TCP connections of the mappings of a NAT, each with its state, its windows and its time-out. The first entry of
/// a mapping has the number of the mapping, so every mapping has one; further ones come from a common store, up to a
/// limit for each mapping.
///
/// Without a free entry a new connection takes the place of the connection of its own mapping that was used longest
/// ago and is not established. If all are established, the oldest of them becomes the shared one of this mapping, which
/// covers every peer without an entry. So neither other mappings nor established connections lose anything: the
/// mapping only lives longer.
///
/// Sessions expire by lists, one per phase, in the order of their last use. Time is in seconds and does not decrease.
/// All memory is allocated at construction. Not thread safe.
class SessionTable {
 public:
  struct Limits {
    std::uint32_t mappings;
    std::uint32_t further;      ///< entries beside the first ones of mappings
    std::uint32_t per_mapping;  ///< at least 1
  };
  /// By nf::TcpPhase, in seconds.
  using Timeouts = std::array<std::uint32_t, 3>;
  struct Counts {
    std::uint64_t live = 0;
    std::uint64_t replaced = 0;  ///< sessions that were not established, for a new one
    std::uint64_t shared = 0;    ///< sessions that became the shared one of their mapping
  };
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  SessionTable(Limits const& limits, Timeouts const& timeouts);

  void set_time(std::uint32_t now_s) { now_s_ = now_s; }

  /// The live session of a mapping with this peer, or null.
  Session* find(std::uint32_t mapping, Remote const& remote);
  /// A new session, opening and without windows, or the shared one. Precondition: find() returns null.
  Session& make(std::uint32_t mapping, Remote const& remote);
  /// Records a segment. Only a segment of the inside, or one that changes the phase, starts the time-out again. True if
  /// the phase has changed.
  bool note(Session& session, Side from, Segment const& segment);

  bool has_live(std::uint32_t mapping) const;
  /// Whether no session of the mapping is beyond its handshake.
  bool is_half_open(std::uint32_t mapping) const;
  /// Ends all sessions of a mapping.
  void release(std::uint32_t mapping);
  /// Ends an expired session and returns its mapping; kNone if no session has expired.
  std::uint32_t expire_one();

  [[gnu::always_inline]] void prefetch(std::uint32_t mapping) const { __builtin_prefetch(&sessions_[mapping]); }
  /// Of the first session of a mapping.
  void prefetch_neighbours(std::uint32_t mapping) const;

  /// Calls `save(session)` for each session, phase by phase, the oldest first.
  template <typename Save>
  void for_each(Save save) const {
    for (nf::TcpPhase const phase : kSavedOrder) {
      for (std::uint32_t at = list(phase).oldest; at != kNone; at = sessions_[at].newer) {
        save(sessions_[at]);
      }
    }
  }
  /// Adds a session as for_each() gave it, in that order. False if that cannot be; then nothing has changed.
  bool restore(std::uint32_t mapping, Session const& session);
  void restore(Counts const& counts);

  Counts const& counts() const { return counts_; }
  std::size_t memory_bytes() const { return sessions_.size() * sizeof(Session); }

 private:
  using List = AgeList<Session, &Session::older, &Session::newer>;
  static constexpr std::array kSavedOrder{nf::TcpPhase::kEstablished, nf::TcpPhase::kClosing, nf::TcpPhase::kOpening};

  List& list(nf::TcpPhase phase) { return lists_[static_cast<std::size_t>(phase)]; }
  List const& list(nf::TcpPhase phase) const { return lists_[static_cast<std::size_t>(phase)]; }
  bool has_expired(Session const& session) const {
    return now_s_ - session.used_s > timeouts_[static_cast<std::size_t>(session.phase())];
  }
  std::uint32_t position_of(Session const& session) const {
    return static_cast<std::uint32_t>(&session - sessions_.data());
  }
  std::uint32_t take_entry(std::uint32_t mapping);
  std::uint32_t place_for(std::uint32_t mapping);
  Session& insert(std::uint32_t position, std::uint32_t mapping, Session const& session);
  void remove(std::uint32_t position);
  void give_back(std::uint32_t position);

  Limits limits_;
  Timeouts timeouts_;
  std::vector<Session> sessions_;
  std::array<List, 3> lists_;  // by phase
  std::uint32_t first_free_ = kNone;
  std::uint32_t now_s_ = 0;
  Counts counts_;
};

}  // namespace catena::nat
