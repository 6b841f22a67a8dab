// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <cstdint>

/// IPv4 fragmentation of frames with an MTU (Packet::set_mtu()). Thread rule: pure functions of the packet, called by
/// its owner.
namespace catena::packet {

/// The number of frames that a packet is sent in: 1 if it is sent unchanged (no MTU, not IPv4, short enough), 0 if it
/// must not be sent (too long with its DF bit set), else the number of its fragments.
std::uint32_t leaves_in(Packet const& packet);

/// The fragments of a packet with leaves_in() >= 2 (RFC 791, section 3.2). Each but the last carries as many octets as
/// the MTU allows, a multiple of 8. A fragment may be fragmented again. Options with the copied flag are in every
/// fragment, the others in the first only. A later header ends its options with "end of list". Ethernet addresses and
/// VLAN tags are repeated; padding after the datagram is not.
class Fragments {
 public:
  /// A view: the packet must not change while fragments are written.
  explicit Fragments(Packet const& packet);
  std::uint32_t count() const { return count_; }
  /// Upper bound of the bytes written by write().
  std::uint32_t max_bytes() const { return l3_ + mtu_; }
  /// Writes fragment `number` (from 0) as a frame to `to`, which has space for max_bytes(). Returns its bytes. `to` may
  /// be the packet's own frame for fragment 0, after the others are written.
  std::uint32_t write(std::uint32_t number, std::uint8_t* to) const;

 private:
  const std::uint8_t* frame_;
  std::uint32_t l3_;
  std::uint32_t mtu_;
  std::uint32_t header_bytes_;        ///< of the packet and of the first fragment
  std::uint32_t later_header_bytes_;  ///< of the others, with the copied options
  std::uint32_t payload_bytes_;
  std::uint32_t first_payload_;  ///< octets of the first fragment
  std::uint32_t later_payload_;  ///< octets of each of the others but the last
  std::uint32_t count_;
  std::uint8_t later_options_[40] = {};
};

}  // namespace catena::packet
