// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/hints.hpp>
#include <catena/packet/layers.hpp>

#include <cstdint>

namespace catena::nf_process {

/// Fields of packets that an NF reads and writes, wherever it works: its packet::Hints, put together.
struct Touched {
  packet::FieldSet reads = packet::kAllFields;
  packet::FieldSet writes = packet::kAllFields;

  static Touched of(packet::Hints const& hints);
  bool operator==(Touched const&) const = default;
};

/// Which bytes of a frame cross to an NF's process, and back: no more than what it says that it touches. What does not
/// cross there, it cannot read; what does not cross back, it cannot change.
class Crossing {
 public:
  /// Everything crosses.
  Crossing() = default;
  explicit Crossing(Touched const& touched);

  /// Bytes from the beginning of a frame of `length` bytes that it gets: all, or to the end of its headers. A frame
  /// without an IPv4 header crosses whole, as parse() looks at more of it.
  std::uint32_t bytes_to_nf(packet::Layers const& layers, std::uint32_t length) const {
    return to_nf_ == Piece::kFrame ? length : header_bytes(layers, length);
  }
  /// Those that come back of a packet that goes on, with the bounds that it was sent with unless may_move().
  std::uint32_t bytes_from_nf(packet::Layers const& layers, std::uint32_t length) const {
    return from_nf_ == Piece::kFrame ? length : from_nf_ == Piece::kHeaders ? header_bytes(layers, length) : 0;
  }
  /// Whether the NF may give a packet that goes on other bounds in its slot.
  bool may_move() const { return may_move_; }
  /// Whether it may choose the port that the packet leaves through.
  bool may_set_port() const { return may_set_port_; }

 private:
  enum class Piece : std::uint8_t { kNone, kHeaders, kFrame };
  static std::uint32_t header_bytes(packet::Layers const& layers, std::uint32_t length);

  Piece to_nf_ = Piece::kFrame;
  Piece from_nf_ = Piece::kFrame;
  bool may_move_ = true;
  bool may_set_port_ = true;
};

}  // namespace catena::nf_process
