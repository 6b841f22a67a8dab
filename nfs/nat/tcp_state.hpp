// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How far the TCP connections of a mapping are, as far as its idle time-out asks (RFC 5382 REQ-5): opening,
/// established or closing. Pure functions.
namespace catena::nat {

inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpRst = 0x04;

/// Bits; none: opening.
enum TcpState : std::uint8_t {
  kAnswered = 1,     ///< a segment came in
  kEstablished = 2,  ///< and the inside went on
  kFinOut = 4,
  kFinIn = 8,
  kClosed = 16,  ///< both sides sent FIN, or one RST
};

constexpr bool is_established(std::uint8_t state) { return (state & (kEstablished | kClosed)) == kEstablished; }

/// The state after a segment with these flags. A connection is established when the inside has sent a segment without
/// SYN after one came in: the outside alone cannot make a mapping last. A SYN begins anew only where nothing is
/// established, because other connections may share the mapping.
constexpr std::uint8_t next_tcp_state(std::uint8_t state, std::uint8_t flags, bool is_outbound) {
  const auto with = [](std::uint8_t bits, int more) { return static_cast<std::uint8_t>(bits | more); };
  if ((flags & kTcpRst) != 0) {
    return with(state, kClosed);
  }
  if ((flags & kTcpSyn) != 0) {
    if (is_established(state)) {
      return state;
    }
    const std::uint8_t base = (state & kClosed) != 0 ? std::uint8_t{0} : state;
    return is_outbound ? base : with(base, kAnswered);
  }
  if ((state & kClosed) != 0) {
    return state;
  }
  if (!is_outbound) {
    state = with(state, kAnswered);
  } else if ((state & kAnswered) != 0) {
    state = with(state, kEstablished);
  }
  if ((flags & kTcpFin) != 0) {
    state = with(state, is_outbound ? kFinOut : kFinIn);
  }
  return (state & kFinOut) != 0 && (state & kFinIn) != 0 ? with(state, kClosed) : state;
}

}  // namespace catena::nat
