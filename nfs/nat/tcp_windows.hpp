// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>

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

  std::array<Half, 2> halves_;
  std::array<std::uint8_t, 2> scales_{};
  bool inside_scales_ = false;  // the SYN of the inside has the window scale option
  bool is_guessed_ = false;     // the SYN of a side was not seen
};
static_assert(sizeof(TcpWindows) == 36);

}  // namespace catena::nat
