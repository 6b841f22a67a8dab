// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/tcp_state.hpp>

#include <cstdint>

#include "hash_index.hpp"
#include "tcp_windows.hpp"

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

/// Unique among endpoints.
constexpr std::uint64_t key_of(Endpoint const& endpoint) {
  return std::uint64_t{endpoint.address} << 32 | std::uint64_t{endpoint.port} << 8 |
         static_cast<std::uint64_t>(endpoint.protocol);
}

/// The peer of a TCP connection. Host order.
struct Remote {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  bool operator==(Remote const&) const = default;
};

/// One TCP connection of a mapping, or all packets of a mapping of UDP or ICMP.
struct Session {
  /// kUnused: the first entry of a mapping whose first connection has ended. kShared: covers all peers without an
  /// entry; only its time-out ends it. That of TCP is established.
  enum Kind : std::uint8_t { kUnused, kPeer, kShared };
  static constexpr std::uint8_t kMaxTcpState = 0x1F;
  static constexpr std::uint8_t kOpened = nf::kTcpAnswered | nf::kTcpOpened;

  TcpWindows windows;
  std::uint32_t remote_address = 0;
  std::uint32_t used_s = 0;                ///< start of its time-out, in the table's seconds
  std::uint32_t older = HashIndex::kNone;  ///< neighbours in the list of its timer; `newer` also chains free entries
  std::uint32_t newer = HashIndex::kNone;
  std::uint16_t remote_port = 0;
  std::uint8_t tcp_state : 5 = 0;  ///< nf::TcpState bits; the initiator is inside
  Kind kind : 2 = kUnused;
  bool is_half_open : 1 = false;  ///< of the first entry, for its mapping: no handshake of its sessions is complete
  Protocol protocol{};

  bool is_with(Remote const& remote) const {
    return kind == kPeer && remote_address == remote.address && remote_port == remote.port;
  }
  void set_tcp_state(std::uint8_t state) { tcp_state = state & kMaxTcpState; }
  nf::TcpPhase phase() const { return nf::tcp_phase(tcp_state); }
  /// Whether segments without SYN, FIN and RST leave its state unchanged.
  bool is_open() const { return (tcp_state & (kOpened | nf::kTcpReset)) == kOpened; }
};
static_assert(sizeof(Session) == 56);

/// An internal endpoint and its external counterpart, with its first session: most mappings have one, and its packets
/// need one cache line.
struct alignas(64) Mapping {
  Session first;
  std::uint32_t internal_address = 0;
  std::uint16_t internal_port = 0;
  std::uint16_t external_port = 0;

  Endpoint internal() const { return {internal_address, internal_port, first.protocol}; }
};
static_assert(sizeof(Mapping) == 64);

}  // namespace catena::nat
