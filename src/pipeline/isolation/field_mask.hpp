// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/hints.hpp>
#include <catena/packet/layers.hpp>

#include <cstdint>

namespace catena::nf_process {

/// Packet fields read and written by an NF, on any processor: the union of its packet::Hints.
struct FieldUse {
  packet::FieldSet reads = packet::kAllFields;
  packet::FieldSet writes = packet::kAllFields;

  static FieldUse of(packet::Hints const& hints);
  bool operator==(FieldUse const&) const = default;
};

/// The bytes of a frame copied to an NF process and back: only the fields in the NF's hints. The NF cannot read other
/// bytes, nor change bytes that are not copied back.
class FieldMask {
 public:
  /// Copies everything.
  FieldMask() = default;
  explicit FieldMask(FieldUse const& field_use);

  /// Bytes copied to the NF from the start of a frame of `length` bytes: all, or up to the end of its headers. A frame
  /// without an IPv4 header is copied whole, as parse() reads more of it.
  std::uint32_t bytes_to_nf(packet::Layers const& layers, std::uint32_t length) const {
    return to_nf_ == Piece::kFrame ? length : header_bytes(layers, length);
  }
  /// Bytes copied back of a packet that is still alive. It keeps its bounds unless may_move().
  std::uint32_t bytes_from_nf(packet::Layers const& layers, std::uint32_t length) const {
    return from_nf_ == Piece::kFrame ? length : from_nf_ == Piece::kHeaders ? header_bytes(layers, length) : 0;
  }
  /// Whether the NF may change the bounds of such a packet in its slot.
  bool may_move() const { return may_move_; }
  /// Whether the NF may choose the packet's output port.
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
