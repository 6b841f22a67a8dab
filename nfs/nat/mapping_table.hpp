// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/portable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "half_open.hpp"
#include "hash_index.hpp"
#include "mapping.hpp"
#include "port_pool.hpp"
#include "session_table.hpp"

namespace catena::nat {

/// A range of ports, both bounds included.
struct PortRange {
  std::uint16_t first = 1024;
  std::uint16_t last = 65535;
  bool operator==(PortRange const&) const = default;
};

/// Idle time-outs in seconds.
struct Timeouts {
  std::uint32_t udp = 300;                            // RFC 4787 REQ-5
  std::uint32_t tcp_established = 2 * 3600 + 4 * 60;  // RFC 5382 REQ-5
  std::uint32_t tcp_opening = 4 * 60;                 // RFC 5382 REQ-5, apart from closing by RFC 7857 section 2.1
  std::uint32_t tcp_closing = 4 * 60;
  std::uint32_t icmp = 60;  // RFC 5508 REQ-2
  bool operator==(Timeouts const&) const = default;
};

/// The mappings of a NAT: endpoint independent (RFC 4787 REQ-1), paired (REQ-2: the external address is a function of
/// the internal one), with the source port kept if it is free, and its parity if possible (REQ-4). Results depend only
/// on the configuration and the order and times of the calls.
///
/// A mapping lives as long as one of its sessions. One of TCP has a session per peer, others have one. Sessions expire
/// without any search. Time is in whole seconds: a mapping lives for at least its time-out and less than one second
/// longer. All memory is allocated at construction.
///
/// A TCP mapping is half open while no handshake of its sessions is complete. Any inside host, or a sender that spoofs
/// one, can create these at line rate, so at most `max_half_open` live. Half open mappings are evicted, least recently
/// used first: if there are too many, if no memory is left for a mapping, or if no port is left for a TCP mapping. All
/// other mappings live for their time-out. Not thread safe.
class MappingTable {
 public:
  struct Settings {
    std::vector<std::uint32_t> external_addresses;  ///< not empty, at most 65536
    PortRange ports;                                ///< of TCP and UDP
    PortRange identifiers{0, 65535};                ///< of ICMP echoes
    std::uint32_t max_mappings = 1'000'000;         ///< at most HashIndex::kMaxEntries
    std::uint32_t max_half_open = 500'000;          ///< at least 1
    std::uint32_t further_sessions = 250'000;       ///< TCP sessions, beside one per mapping
    std::uint32_t max_sessions_per_mapping = 16;    ///< at least 1
    Timeouts timeouts;
    bool operator==(Settings const&) const = default;
  };
  struct Counts {
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
    std::uint64_t created = 0;
    std::uint64_t expired = 0;
    std::uint64_t half_open = 0;          ///< of `live`
    std::uint64_t half_open_evicted = 0;  ///< evicted before their expiry
  };

  explicit MappingTable(Settings const& settings);

  /// Maximum number of mappings removed per packet. It exceeds the number of new mappings per packet, and no packet
  /// waits for many removals.
  static constexpr std::uint32_t kExpirePerCall = 8;

  /// Sets the time, which must not decrease, and removes up to `limit` expired mappings. Call it for every packet.
  void advance(std::uint64_t now_ns, std::uint32_t limit = kExpirePerCall) {
    if (now_ns >= next_second_ns_) {
      start_second(now_ns);
    }
    if (may_expire_) {
      expire(limit);
    }
  }

  /// The live mapping of an endpoint, or null. Valid until the next advance().
  Mapping const* find_internal(Endpoint const& endpoint) { return find_internal(endpoint, hash(endpoint)); }
  Mapping const* find_external(Endpoint const& endpoint) { return find_external(endpoint, hash(endpoint)); }
  /// The same with the hash of the endpoint.
  Mapping const* find_internal(Endpoint const& endpoint, std::uint64_t hash) {
    return live_or_null(by_internal_.find(
        hash, [&](std::uint32_t position) { return sessions_.mapping(position).internal() == endpoint; }));
  }
  Mapping const* find_external(Endpoint const& endpoint, std::uint64_t hash) {
    return live_or_null(
        by_external_.find(hash, [&](std::uint32_t position) { return is_at(sessions_.mapping(position), endpoint); }));
  }
  /// Creates a mapping; `remote`: the peer of the first session of a TCP mapping. Null if `max_mappings` live, or the
  /// host's external address has no free port, and no half open mapping can be evicted. Invalidates earlier results of
  /// find_*(). Precondition: find_internal() returns null.
  Mapping const* create(Endpoint const& internal, Remote const& remote = {});

  Endpoint external_of(Mapping const& mapping) const {
    return {settings_.external_addresses[external_number_of(mapping.internal_address)], mapping.external_port,
            mapping.first.protocol};
  }

  /// Records an outbound packet of UDP or ICMP: the time-out of the mapping restarts (RFC 4787 REQ-6).
  void note_outbound(Mapping const& mapping) { sessions_.use(sessions_.position_of(mapping)); }
  /// Records a TCP segment between the mapping and a peer: that of their session. A segment of the inside makes it,
  /// except a RST, and one of the inside only restarts its time-out, unless the applicable time-out changes.
  void note_segment(Mapping const& mapping, Side from, Remote const& remote, Segment const& segment) {
    if (!sessions_.note_plain(sessions_.position_of(mapping), from, remote, segment)) [[unlikely]] {
      note_other_segment(mapping, from, remote, segment);
    }
  }

  /// Prefetch for a later find: first the index, then the mapping, then its list neighbours.
  std::uint64_t hash(Endpoint const& endpoint) const { return hash_(key_of(endpoint)); }
  void prefetch_internal_index(std::uint64_t hash) const { by_internal_.prefetch(hash); }
  void prefetch_external_index(std::uint64_t hash) const { by_external_.prefetch(hash); }
  std::uint32_t guess_internal(std::uint64_t hash) const { return prefetched(by_internal_.first_guess(hash)); }
  std::uint32_t guess_external(std::uint64_t hash) const { return prefetched(by_external_.first_guess(hash)); }
  [[gnu::always_inline]] void prefetch_neighbours(std::uint32_t guess) const {
    sessions_.prefetch_neighbours(guess);
    if (sessions_.mapping(guess).first.is_half_open) {
      half_open_.prefetch(guess);
    }
  }

  /// An external endpoint, with the number of its address.
  struct ExternalPort {
    Endpoint endpoint;
    std::uint32_t address_number;
  };
  /// Takes over the mappings of internal addresses with true `is_mine` from other tables with the same addresses and
  /// time-outs, which are not used any more. Their external ports stay the same; returns the ones which were not in
  /// this table's pools, and are from now on. Grows beyond its limits if it has to. For a table never used before.
  std::vector<ExternalPort> take_over(std::span<MappingTable const* const> before,
                                      std::function<bool(std::uint32_t)> const& is_mine);
  /// Removes a free port from this table's pools: another table has it.
  void give_away(ExternalPort const& port) {
    pool_of(port.address_number, port.endpoint.protocol).take_exactly(port.endpoint.port);
  }
  /// Adds the counts of a table whose mappings other tables have taken over, once this one has its part.
  void add_counts(MappingTable const& before);

  /// Saves settings, mappings and sessions for another table.
  void save(nf::StateWriter& state) const;
  /// Loads into a table never used before. FailedPrecondition: the settings differ; DataLoss: the data is not from a
  /// mapping table of this version. After an error this table must not be used.
  Status load(nf::StateReader& state);

  Settings const& settings() const { return settings_; }
  Counts counts() const {
    Counts counts = counts_;
    counts.half_open = half_open_.count();
    return counts;
  }
  SessionTable::Counts const& session_counts() const { return sessions_.counts(); }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  /// A function of the address alone, so a host keeps its external address for ever (RFC 4787 REQ-2). The product
  /// spreads neighbours and equal host parts alike.
  std::uint32_t external_number_of(std::uint32_t internal_address) const {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
    const std::uint64_t spread = (internal_address * kGolden) >> 32;
    return static_cast<std::uint32_t>((spread * settings_.external_addresses.size()) >> 32);
  }
  PortPool& pool_of(std::uint32_t external_number, Protocol protocol) {
    return pools_[std::size_t{external_number} * kProtocols + static_cast<std::uint32_t>(protocol)];
  }
  // GCC removes calls of functions without any effect but a prefetch
  [[gnu::always_inline]] std::uint32_t prefetched(std::uint32_t guess) const {
    if (guess != kNone) {
      sessions_.prefetch(guess);
    }
    return guess;
  }
  bool is_at(Mapping const& mapping, Endpoint const& external) const {
    return mapping.external_port == external.port && external_of(mapping) == external;
  }

  void note_other_segment(Mapping const& mapping, Side from, Remote const& remote, Segment const& segment);
  void start_second(std::uint64_t now_ns);
  /// Without a session. Precondition: an entry is free, and the port is allocated to this mapping.
  std::uint32_t add(Endpoint const& internal, std::uint16_t external_port);
  Mapping const* live_or_null(std::uint32_t position) {
    if (position == kNone) {
      return nullptr;
    }
    if (!sessions_.has_live(position)) [[unlikely]] {
      release(position);
      ++counts_.expired;
      return nullptr;
    }
    return &sessions_.mapping(position);
  }
  void expire(std::uint32_t limit);
  bool is_full() const { return counts_.live >= settings_.max_mappings; }
  bool make_room(std::uint32_t external_number, Protocol protocol);
  void evict(std::uint32_t position);
  void release(std::uint32_t position);
  void set_half_open(std::uint32_t position, bool is_half_open);
  struct MovedSession;
  void make_room_for(std::span<const std::vector<MovedSession>> sessions);
  std::optional<std::uint32_t> load_mapping(nf::StateReader& state, Protocol protocol, bool may_exist);
  bool load_session(nf::StateReader& state);
  bool load_idle(nf::StateReader& state, Protocol protocol);

  Settings settings_;
  std::vector<PortPool> pools_;  // by external address, then protocol
  KeyedHash hash_;
  HashIndex by_internal_;
  HashIndex by_external_;
  SessionTable sessions_;  // with the mappings
  HalfOpen half_open_;
  std::uint32_t first_free_ = 0;
  bool has_started_ = false;
  bool may_expire_ = false;           // a list may have expired entries
  std::uint64_t start_s_ = 0;         // time of the first packet
  std::uint64_t next_second_ns_ = 0;  // end of the current second
  Counts counts_;                     // without half_open
};

}  // namespace catena::nat
