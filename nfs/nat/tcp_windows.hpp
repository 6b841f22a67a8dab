// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>
#include <catena/nf/tcp_state.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace catena::nat {

/// The fields of a TCP segment that change the state of its connection. Host order.
struct Segment {
  std::uint32_t sequence = 0;
  std::uint32_t end = 0;  ///< the sequence number after the segment; SYN and FIN count as one byte each
  std::uint32_t acknowledged = 0;
  std::uint16_t window = 0;
  std::uint8_t flags = 0;
  std::optional<std::uint8_t> scale = std::nullopt;  ///< window scale option of a SYN
};

/// The sides of a connection, seen from the NAT.
enum class Side : std::uint8_t { kInside = 0, kOutside = 1 };

/// The sequence numbers that both sides of a TCP connection may use, derived from its segments as they pass (G. van
/// Rooij, "Real Stateful TCP Packet Filtering in IP Filter", 2000; window scale by RFC 7323). Pure values.
///
/// A segment is in the window if its bytes are within the window of the receiver, and if it acknowledges data of the
/// receiver that was sent, and not long ago. The windows of a connection first seen without its SYN are guessed: as
/// large as TCP permits.
class TcpWindows {
 public:
  bool has_started() const { return halves_[0].window != 0; }

  /// Starts a connection with a segment of the inside.
  void start(Segment const& first);

  /// Whether the segment is in the window. If so, the windows move, except by a RST. Precondition: has_started(). With
  /// SYN: the handshake is incomplete.
  bool accept(Side from, Segment const& segment);
  /// The same. Precondition: the segment has no SYN, FIN and RST.
  bool accept_plain(Side from, Segment const& segment) { return accept_as<true>(from, segment); }

  /// Whether the receiver of a RST expects exactly this sequence number next (RFC 5961 section 3.2), by its last
  /// acknowledgement, or after the data in flight before the RST.
  bool is_next(Side from, std::uint32_t sequence) const {
    return sequence == half(other(from)).acknowledged || (!is_guessed_ && sequence == half(from).end);
  }
  /// Whether a segment of the inside with this end is the same as its last one, sent again.
  bool ends_at(std::uint32_t end) const { return half(Side::kInside).end == end; }

  void save(nf::StateWriter& state) const;
  /// The bytes may be arbitrary; the windows are then as wrong as they are.
  void load(nf::StateReader& state);

 private:
  static constexpr std::uint8_t kMaxScale = 14;  // RFC 7323 section 2.3
  static constexpr std::uint32_t kMaxWindow = 65535U << kMaxScale;
  /// Least age of acknowledgements in bytes that is accepted: the largest window without scaling, and a segment.
  static constexpr std::uint32_t kMinAckWindow = 65535 + 1500;
  /// Sequence numbers further apart than this have no order.
  static constexpr std::uint32_t kLongestReach = 0x7FFFFFFF;

  /// The segments of one side.
  struct Half {
    std::uint32_t end = 0;           // after the last byte sent
    std::uint32_t limit = 0;         // the receiver's window ends here
    std::uint32_t window = 0;        // the largest one it has offered; 0: it has sent nothing
    std::uint32_t acknowledged = 0;  // its last acknowledgement
  };

  static Side other(Side side) { return side == Side::kInside ? Side::kOutside : Side::kInside; }
  static bool is_after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  Half const& half(Side side) const { return halves_[static_cast<std::size_t>(side)]; }
  void begin(Side from, Segment const& segment);
  template <bool IsPlain>
  bool accept_as(Side from, Segment const& segment);

  std::array<Half, 2> halves_;
  std::array<std::uint8_t, 2> scales_{};
  bool inside_scales_ = false;  // the SYN of the inside has the window scale option
  bool is_guessed_ = false;     // the SYN of a side was not seen
};
static_assert(sizeof(TcpWindows) == 36);

template <bool IsPlain>
[[gnu::always_inline]] inline bool TcpWindows::accept_as(Side from, Segment const& segment) {
  Half& sender = half(from);
  Half& receiver = half(other(from));
  const bool is_rst = !IsPlain && (segment.flags & nf::kTcpRst) != 0;
  const bool is_syn = !IsPlain && (segment.flags & nf::kTcpSyn) != 0;
  // a RST of some hosts has ACK and acknowledges 0
  const bool has_ack = (segment.flags & nf::kTcpAck) != 0 && !(is_rst && segment.acknowledged == 0);
  const std::uint32_t acknowledged = has_ack ? segment.acknowledged : receiver.end;
  // of bytes not sent yet the age is larger than any window
  if (receiver.end - acknowledged > std::max(sender.window, kMinAckWindow)) {
    return false;
  }
  if (is_rst && sender.window == 0) {
    return true;  // it answers a SYN
  }
  if (sender.window == 0 || (is_syn && has_ack && segment.end != sender.end)) {
    begin(from, segment);
  }
  const bool is_recent = receiver.window == 0 || !is_after(sender.end - receiver.window, segment.end);
  if (is_after(segment.sequence, sender.limit)) {
    // a receiver may take more than it offered: its acknowledgement must then be in the window
    if (!is_rst && is_recent && segment.end - sender.limit < receiver.window) {
      sender.end = segment.end;
    }
    return false;
  }
  if (!is_recent) {
    return false;
  }
  if (is_rst) {
    return true;
  }
  const std::uint32_t window = std::uint32_t{segment.window} << (is_syn ? 0 : scales_[static_cast<std::size_t>(from)]);
  // writes only changes: the line then needs no way back to memory
  if (window > sender.window) {
    sender.window = window;
  }
  if (is_after(segment.end, sender.end)) {
    sender.end = segment.end;
  }
  if (receiver.window != 0 && is_after(segment.end, sender.limit)) {
    receiver.window = std::min(receiver.window + (segment.end - sender.limit), kLongestReach);
  }
  if (has_ack && is_after(acknowledged, sender.acknowledged)) {
    sender.acknowledged = acknowledged;
  }
  const std::uint32_t limit = acknowledged + std::max(window, 1U);
  if (is_after(limit, receiver.limit)) {
    receiver.limit = limit;
  }
  return true;
}

}  // namespace catena::nat
