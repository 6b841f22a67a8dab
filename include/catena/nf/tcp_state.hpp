// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The state of a TCP connection as far as its time-out needs it, for NFs that keep state of passing connections. The
/// state machine of RFC 7857 section 2 (that of RFC 6146 section 3.5.2.2), for a middlebox that must also resist forged
/// segments. Pure functions.
namespace catena::nf {

inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpRst = 0x04;
inline constexpr std::uint8_t kTcpAck = 0x10;

/// Bits; 0 if only the initiator has sent a segment.
enum TcpState : std::uint8_t {
  kTcpAnswered = 1,  ///< the responder has sent a segment, too
  kTcpOpened = 2,    ///< the initiator has replied: the handshake is complete
  kTcpFinFromInitiator = 4,
  kTcpFinFromResponder = 8,
  kTcpReset = 16,  ///< a RST came, and no later segment of the initiator
};

enum class TcpPhase : std::uint8_t {
  kOpening,      ///< RFC 5382 REQ-5: transitory, partially open
  kEstablished,  ///< also half-closed
  kClosing,      ///< RFC 5382 REQ-5: transitory, closing
};

constexpr TcpPhase tcp_phase(std::uint8_t state) {
  constexpr std::uint8_t kBothFins = kTcpFinFromInitiator | kTcpFinFromResponder;
  if ((state & kTcpOpened) == 0) {
    return TcpPhase::kOpening;
  }
  return (state & kTcpReset) != 0 || (state & kBothFins) == kBothFins ? TcpPhase::kClosing : TcpPhase::kEstablished;
}

/// The properties of a segment that change the state.
struct TcpSegment {
  std::uint8_t flags;
  bool is_from_initiator;
};

/// The state after a segment.
///
/// - Opened: the initiator sent a segment without SYN after a segment of the responder. So the responder alone, or an
///   initiator with a forged address that never sees the answer, cannot open a connection.
/// - A RST is valid until the initiator's next segment, so one forged RST ends no connection (RFC 7857 section 2.2).
///   Later segments of the responder do not undo a RST.
/// - FINs of both sides close.
/// - A SYN of the initiator restarts a closing connection, and does not change an established one.
constexpr std::uint8_t next_tcp_state(std::uint8_t state, TcpSegment const& segment) {
  const auto with = [](std::uint8_t bits, int more) { return static_cast<std::uint8_t>(bits | more); };
  const auto without = [](std::uint8_t bits, int less) { return static_cast<std::uint8_t>(bits & ~less); };
  const TcpPhase phase = tcp_phase(state);
  if ((segment.flags & kTcpRst) != 0) {
    return phase == TcpPhase::kEstablished ? with(state, kTcpReset) : state;
  }
  if ((segment.flags & kTcpSyn) != 0) {
    if (phase == TcpPhase::kOpening) {
      return segment.is_from_initiator ? state : with(state, kTcpAnswered);
    }
    return phase == TcpPhase::kClosing && segment.is_from_initiator ? std::uint8_t{0} : state;
  }
  if (segment.is_from_initiator) {
    state = without(state, kTcpReset);
    if ((state & kTcpAnswered) != 0) {
      state = with(state, kTcpOpened);
    }
  } else {
    state = with(state, kTcpAnswered);
  }
  if ((segment.flags & kTcpFin) != 0) {
    state = with(state, segment.is_from_initiator ? kTcpFinFromInitiator : kTcpFinFromResponder);
  }
  return state;
}

}  // namespace catena::nf
