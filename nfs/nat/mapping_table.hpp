// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/portable.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hash_index.hpp"
#include "port_pool.hpp"

namespace catena::nat {

enum class Protocol : std::uint8_t { kTcp = 0, kUdp = 1, kIcmp = 2 };
inline constexpr std::uint32_t kProtocols = 3;

/// One end of a session with IPv4 addresses, compressed for the table; host order. For kIcmp the port is the identifier
/// of an echo.
struct Endpoint {
  std::uint32_t address;
  std::uint16_t port;
  Protocol protocol;
  bool operator==(Endpoint const&) const = default;
};

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

/// Information from a packet about the state of its mapping.
struct Use {
  std::uint8_t tcp_flags = 0;  ///< of TCP segments
  bool has_data = false;
};

/// An internal endpoint and its external counterpart.
struct Mapping {
  std::uint32_t used_s;  ///< start of its time-out, in the table's seconds
  std::uint32_t internal_address;
  std::uint32_t older;  ///< neighbours in the list of its time-out; `newer` also chains free entries
  std::uint32_t newer;
  std::uint32_t half_open_older;  ///< the same among the half open ones of its external address
  std::uint32_t half_open_newer;
  std::uint16_t internal_port;
  std::uint16_t external_port;
  std::uint16_t external_number;  ///< position of its external address in the configuration
  Protocol protocol;
  std::uint8_t tcp_state;  ///< nf::TcpState bits; the initiator is inside

  Endpoint internal() const { return {internal_address, internal_port, protocol}; }
};
static_assert(sizeof(Mapping) == 32);

/// The mappings of a NAT: endpoint independent (RFC 4787 REQ-1), paired (REQ-2: the external address is a function of
/// the internal one), with the source port kept if it is free, and its parity if possible (REQ-4). Results depend only
/// on the configuration and the order and times of the calls.
///
/// Mappings expire by lists, one per time-out, in the order of their last use, without any search. Time is in whole
/// seconds: a mapping lives for at least its time-out and less than one second longer. All memory is allocated at
/// construction.
///
/// A TCP mapping is half open until its handshake is complete. Any inside host, or a sender that spoofs one, can create
/// these at line rate, so at most `max_half_open` live. Half open mappings are evicted, least recently used first: if
/// there are too many, if no memory is left for a mapping, or if no port is left for a TCP mapping. All other mappings
/// live for their time-out. Not thread safe.
class MappingTable {
 public:
  struct Settings {
    std::vector<std::uint32_t> external_addresses;  ///< not empty, at most 65536
    PortRange ports;                                ///< of TCP and UDP
    PortRange identifiers{0, 65535};                ///< of ICMP echoes
    std::uint32_t max_mappings = 1'000'000;         ///< at most HashIndex::kMaxEntries
    std::uint32_t max_half_open = 500'000;          ///< at least 1
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
  void advance(std::uint64_t now_ns, std::uint32_t limit = kExpirePerCall);

  /// The live mapping of an endpoint, or null. Valid until the next advance().
  Mapping const* find_internal(Endpoint const& endpoint);
  Mapping const* find_external(Endpoint const& endpoint);
  /// Creates a mapping. Null if `max_mappings` live, or the host's external address has no free port, and no half open
  /// mapping can be evicted. Invalidates earlier results of find_*(). Precondition: find_internal() returns null.
  Mapping const* create(Endpoint const& internal);

  Endpoint external_of(Mapping const& mapping) const {
    return {settings_.external_addresses[mapping.external_number], mapping.external_port, mapping.protocol};
  }

  /// Records an outbound packet of the mapping: its time-out restarts (RFC 4787 REQ-6).
  void note_outbound(Mapping const& mapping, Use const& use);
  /// Records an inbound packet of the mapping. Only a TCP segment that changes the applicable time-out starts it.
  void note_inbound(Mapping const& mapping, Use const& use);

  /// Prefetch for a later find: first the index, then the mapping, then its list neighbours.
  std::uint64_t hash(Endpoint const& endpoint) const { return hash_(key_of(endpoint)); }
  void prefetch_internal_index(std::uint64_t hash) const { by_internal_.prefetch(hash); }
  void prefetch_external_index(std::uint64_t hash) const { by_external_.prefetch(hash); }
  std::uint32_t guess_internal(std::uint64_t hash) const { return prefetched(by_internal_.first_guess(hash)); }
  std::uint32_t guess_external(std::uint64_t hash) const { return prefetched(by_external_.first_guess(hash)); }
  void prefetch_neighbours(std::uint32_t guess) const;

  /// Saves settings and mappings for another table.
  void save(nf::StateWriter& state) const;
  /// Loads into a table never used before. FailedPrecondition: the settings differ; DataLoss: the data is not from a
  /// mapping table. After an error this table must not be used.
  Status load(nf::StateReader& state);

  Settings const& settings() const { return settings_; }
  Counts const& counts() const { return counts_; }
  std::size_t memory_bytes() const;

 private:
  enum TimeoutClass : std::uint8_t { kUdpIdle, kTcpEstablished, kTcpOpening, kTcpClosing, kIcmpIdle, kTimeoutClasses };
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  struct List {
    std::uint32_t oldest = kNone;
    std::uint32_t newest = kNone;
  };

  static std::uint64_t key_of(Endpoint const& endpoint) {
    return std::uint64_t{endpoint.address} << 32 | std::uint64_t{endpoint.port} << 8 |
           static_cast<std::uint64_t>(endpoint.protocol);
  }
  static TimeoutClass class_of(Protocol protocol, std::uint8_t tcp_state);
  static TimeoutClass class_of(Mapping const& mapping) { return class_of(mapping.protocol, mapping.tcp_state); }
  bool has_expired(Mapping const& mapping) const { return now_s_ - mapping.used_s > timeouts_[class_of(mapping)]; }
  std::uint32_t position_of(Mapping const& mapping) const {
    return static_cast<std::uint32_t>(&mapping - mappings_.data());
  }
  std::uint32_t external_number_of(std::uint32_t internal_address) const;
  PortPool& pool_of(std::uint32_t external_number, Protocol protocol) {
    return pools_[std::size_t{external_number} * kProtocols + static_cast<std::uint32_t>(protocol)];
  }
  std::uint32_t prefetched(std::uint32_t guess) const {
    if (guess != kNone) {
      __builtin_prefetch(&mappings_[guess]);
    }
    return guess;
  }

  /// The neighbours of a mapping in one kind of list.
  using Neighbour = std::uint32_t Mapping::*;

  /// Precondition: an entry is free, and the port is allocated to this mapping.
  Mapping& add(Endpoint const& internal, std::uint32_t external_number, std::uint16_t external_port,
               std::uint32_t used_s, std::uint8_t tcp_state);
  Mapping const* live_or_null(std::uint32_t position);
  void expire(std::uint32_t limit);
  bool make_room(std::uint32_t external_number, Protocol protocol);
  void evict(std::uint32_t position);
  void release(std::uint32_t position);
  void append(std::uint32_t position);
  void unlink(std::uint32_t position);
  void append_to(List& list, std::uint32_t position, Neighbour older, Neighbour newer);
  void unlink_from(List& list, std::uint32_t position, Neighbour older, Neighbour newer);
  void use(std::uint32_t position, std::uint8_t tcp_state);

  Settings settings_;
  std::array<std::uint32_t, kTimeoutClasses> timeouts_;
  std::vector<PortPool> pools_;  // by external address, then protocol
  std::vector<Mapping> mappings_;
  KeyedHash hash_;
  HashIndex by_internal_;
  HashIndex by_external_;
  std::array<List, kTimeoutClasses> lists_;
  std::vector<List> half_open_;  // by external address
  std::uint32_t first_free_ = 0;
  bool has_started_ = false;
  std::uint64_t start_s_ = 0;  // time of the first packet
  std::uint32_t now_s_ = 0;    // seconds since then
  bool may_expire_ = false;    // a list may have expired entries
  Counts counts_;
};

}  // namespace catena::nat
