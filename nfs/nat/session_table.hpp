// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "age_list.hpp"
#include "mapping.hpp"

namespace catena::nat {

/// The timer that ends an idle session.
enum class Timer : std::uint8_t { kUdp, kIcmp, kTcpOpening, kTcpEstablished, kTcpClosing };
inline constexpr std::size_t kTimers = 5;

/// The entries of the mappings of a NAT, each with its first session, and the further sessions of TCP mappings: each
/// connection has its state, its windows and its time-out. A session has a number. That of a mapping's first session is
/// the position of the mapping; further ones come from a common store, up to a limit for each mapping.
///
/// Without a free entry a new connection takes the place of the connection of its own mapping that was used longest
/// ago and is not established. If all are established, the oldest of them becomes the shared one of this mapping, which
/// covers every peer without an entry. So neither other mappings nor established connections lose anything: the
/// mapping only lives longer.
///
/// Sessions expire by lists, one per timer, in the order of their last use. Time is in seconds and does not decrease.
/// All memory is allocated at construction. Not thread safe.
class SessionTable {
 public:
  struct Limits {
    std::uint32_t mappings;
    std::uint32_t further;      ///< sessions beside the first ones of mappings
    std::uint32_t per_mapping;  ///< at least 1
  };
  /// By Timer, in seconds.
  using Timeouts = std::array<std::uint32_t, kTimers>;
  /// Of TCP.
  struct Counts {
    std::uint64_t live = 0;
    std::uint64_t replaced = 0;  ///< sessions that were not established, for a new one
    std::uint64_t shared = 0;    ///< sessions that became the shared one of their mapping
  };
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  SessionTable(Limits const& limits, Timeouts const& timeouts);

  void set_time(std::uint32_t now_s) { now_s_ = now_s; }
  std::uint32_t now_s() const { return now_s_; }

  /// The entry of a mapping. Its session, apart from the protocol, is changed by this table only.
  Mapping& mapping(std::uint32_t position) { return entries_.mappings[position]; }
  Mapping const& mapping(std::uint32_t position) const { return entries_.mappings[position]; }
  std::uint32_t position_of(Mapping const& mapping) const {
    return static_cast<std::uint32_t>(&mapping - entries_.mappings.data());
  }

  /// The number of the live session of a TCP mapping with this peer, or kNone.
  std::uint32_t find(std::uint32_t mapping, Remote const& remote) const;
  /// A new session of a TCP mapping, opening and without windows, or its shared one. Precondition: find() returns
  /// kNone.
  std::uint32_t make(std::uint32_t mapping, Remote const& remote);
  /// Starts the session of a mapping of UDP or ICMP.
  void make_shared(std::uint32_t mapping);
  /// Records a segment. Only a segment of the inside, or one that changes the phase, starts the time-out again. True if
  /// the phase has changed.
  bool note(std::uint32_t number, Side from, Segment const& segment);
  /// The short path of most segments, which have no SYN, FIN and RST and belong to an open first session. Records such
  /// a segment as find() and note() would. False, without any change, for any other segment.
  bool note_plain(std::uint32_t mapping, Side from, Remote const& remote, Segment const& segment) {
    Session& first = entries_.mappings[mapping].first;
    if (!is_plain(segment) || !first.is_open() || !first.is_with(remote) || !is_fresh(first)) {
      return false;
    }
    first.windows.accept_plain(from, segment);
    if (from == Side::kInside) {
      use(mapping);
    }
    return true;
  }
  /// Starts the time-out again. Within a second the order of a list does not change, so then the list is left alone:
  /// the neighbours are far away in memory.
  void use(std::uint32_t mapping) {
    if (entries_.mappings[mapping].first.used_s != now_s_) {
      restart(mapping, entries_.mappings[mapping].first.tcp_state);
    }
  }

  bool has_live(std::uint32_t mapping) const {
    return is_fresh(entries_.mappings[mapping].first) || search_live(mapping);
  }
  /// Whether no session of a TCP mapping is beyond its handshake.
  bool is_half_open(std::uint32_t mapping) const;
  /// Ends all sessions of a mapping.
  void release(std::uint32_t mapping);
  /// Ends an expired session and returns its mapping; kNone if no session has expired.
  std::uint32_t expire_one();

  // GCC removes calls of functions without any effect but a prefetch
  [[gnu::always_inline]] void prefetch(std::uint32_t mapping) const { __builtin_prefetch(&entries_.mappings[mapping]); }
  /// Of the first session of a mapping.
  [[gnu::always_inline]] void prefetch_neighbours(std::uint32_t mapping) const {
    Session const& first = entries_.mappings[mapping].first;
    if (first.used_s == now_s_ || first.kind == Session::kUnused) {
      return;  // it will stay where it is
    }
    for (const std::uint32_t neighbour : {first.older, first.newer}) {
      if (neighbour != kNone) {
        __builtin_prefetch(&entries_[neighbour]);
      }
    }
  }

  /// Calls `save(mapping, session)` for each session of the timer, the oldest first.
  template <typename Save>
  void for_each(Timer timer, Save save) const {
    for (std::uint32_t at = list(timer).oldest; at != kNone; at = entries_[at].newer) {
      save(entries_.mappings[mapping_of(at)], entries_[at]);
    }
  }
  /// Adds a session as for_each() gave it, in that order. False if that cannot be; then nothing has changed.
  bool restore(std::uint32_t mapping, Session const& session);
  void restore(Counts const& counts);

  Counts const& counts() const { return counts_; }
  std::size_t memory_bytes() const;

 private:
  using List = AgeList<Session, &Session::older, &Session::newer>;

  struct alignas(64) Further {
    Session session;
    std::uint32_t mapping = kNone;
  };
  /// By number.
  struct Entries {
    std::vector<Mapping> mappings;
    std::vector<Further> further;
    std::vector<std::uint32_t> next;  // session of the same mapping

    Session& operator[](std::uint32_t number) {
      return number < mappings.size() ? mappings[number].first : further[number - mappings.size()].session;
    }
    Session const& operator[](std::uint32_t number) const {
      return number < mappings.size() ? mappings[number].first : further[number - mappings.size()].session;
    }
  };

  static bool is_plain(Segment const& segment) {
    return (segment.flags & (nf::kTcpSyn | nf::kTcpFin | nf::kTcpRst)) == 0;
  }
  static Timer timer_of(Session const& session) {
    if (session.protocol != Protocol::kTcp) {
      return session.protocol == Protocol::kUdp ? Timer::kUdp : Timer::kIcmp;
    }
    return static_cast<Timer>(static_cast<std::uint8_t>(Timer::kTcpOpening) +
                              static_cast<std::uint8_t>(session.phase()));
  }
  List& list(Timer timer) { return lists_[static_cast<std::size_t>(timer)]; }
  List const& list(Timer timer) const { return lists_[static_cast<std::size_t>(timer)]; }
  bool has_expired(Session const& session) const {
    return now_s_ - session.used_s > timeouts_[static_cast<std::size_t>(timer_of(session))];
  }
  /// Whether it lives, whatever its timer.
  bool is_fresh(Session const& session) const {
    return session.kind != Session::kUnused && now_s_ - session.used_s <= shortest_timeout_;
  }
  std::uint32_t mapping_of(std::uint32_t number) const {
    const std::size_t mappings = entries_.mappings.size();
    return number < mappings ? number : entries_.further[number - mappings].mapping;
  }
  bool search_live(std::uint32_t mapping) const;
  void restart(std::uint32_t number, std::uint8_t tcp_state);
  std::uint32_t take_entry(std::uint32_t mapping);
  std::uint32_t place_for(std::uint32_t mapping);
  void insert(std::uint32_t number, Session const& session);
  void remove(std::uint32_t number);
  void give_back(std::uint32_t number);

  Limits limits_;
  Timeouts timeouts_;
  std::uint32_t shortest_timeout_;
  Entries entries_;
  std::array<List, kTimers> lists_;
  std::uint32_t first_free_ = kNone;  // further entry
  std::uint32_t now_s_ = 0;
  Counts counts_;
};

}  // namespace catena::nat
