// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How far a TCP connection is, as far as its time-out asks: for NFs that keep state for connections which pass through
/// them. The machine of RFC 7857 section 2 (that of RFC 6146 section 3.5.2.2), seen from a box that must also hold out
/// against forged segments. Pure functions.
namespace catena::nf {

inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpRst = 0x04;
inline constexpr std::uint8_t kTcpAck = 0x10;

/// Bits; none: the initiator has sent something.
enum TcpState : std::uint8_t {
  kTcpAnswered = 1,  ///< and the responder, too
  kTcpOpened = 2,    ///< and the initiator went on: the handshake is complete
  kTcpFinFromInitiator = 4,
  kTcpFinFromResponder = 8,
  kTcpReset = 16,  ///< a RST came, and nothing of the initiator since
};

enum class TcpPhase : std::uint8_t {
  kOpening,      ///< RFC 5382 REQ-5: transitory, partially open
  kEstablished,  ///< half closed ones, too
  kClosing,      ///< RFC 5382 REQ-5: transitory, closing
};

constexpr TcpPhase tcp_phase(std::uint8_t state) {
  constexpr std::uint8_t kBothFins = kTcpFinFromInitiator | kTcpFinFromResponder;
  if ((state & kTcpOpened) == 0) {
    return TcpPhase::kOpening;
  }
  return (state & kTcpReset) != 0 || (state & kBothFins) == kBothFins ? TcpPhase::kClosing : TcpPhase::kEstablished;
}

/// What a segment says about its connection.
struct TcpSegment {
  std::uint8_t flags;
  bool is_from_initiator;
  bool has_data;
};

/// The state after a segment.
///
/// - Opened: a segment of the initiator without SYN after one of the responder, so the responder alone, or an initiator
///   whose address is forged and who never sees the answer, opens nothing.
/// - A RST is believed until the initiator goes on: one forged RST ends no connection (RFC 7857 section 2.2). What the
///   responder sends after a RST does not undo it.
/// - FINs of both sides close. Data of the initiator after that is of another connection that shares the entry, as in a
///   NAT, and takes them back.
/// - A SYN of the initiator begins anew where the connection is closing, and changes nothing where it is established.
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
    if (segment.has_data && (segment.flags & kTcpFin) == 0 && tcp_phase(state) == TcpPhase::kClosing) {
      state = without(state, kTcpFinFromInitiator | kTcpFinFromResponder);
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
