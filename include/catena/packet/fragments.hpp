// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <cstdint>

/// IPv4 fragmentation of frames that are marked with an MTU (Packet::set_mtu()). Thread rule: pure functions over the
/// packet, any thread that owns it.
namespace catena::packet {

/// The frames in which a packet leaves: 1 for one that leaves as it is (not marked, not IPv4, short enough), 0 for one
/// that must not leave at all (too long, and its DF bit is set), else the number of its fragments.
std::uint32_t leaves_in(Packet const& packet);

/// The fragments of a packet of which leaves_in() says 2 or more (RFC 791, section 3.2): each but the last carries as
/// many octets as the MTU allows, a multiple of 8. A fragment may be cut again. Options go into every fragment where
/// their copied flag is set, into the first one else; a later header ends its options with "end of list". Ethernet
/// addresses and VLAN tags are repeated, padding after the datagram is not.
class Fragments {
 public:
  /// A view: the packet must stay as it is while fragments are written.
  explicit Fragments(Packet const& packet);
  std::uint32_t count() const { return count_; }
  /// Most bytes that write() writes.
  std::uint32_t max_bytes() const { return l3_ + mtu_; }
  /// Writes fragment `number` (from 0) as a frame to `to`, which has room for max_bytes(). Returns its bytes. `to` may
  /// be the packet's own frame for fragment 0, once the others are written.
  std::uint32_t write(std::uint32_t number, std::uint8_t* to) const;

 private:
  const std::uint8_t* frame_;
  std::uint32_t l3_;
  std::uint32_t mtu_;
  std::uint32_t header_bytes_;        ///< of the packet and of the first fragment
  std::uint32_t later_header_bytes_;  ///< of the others: options that are copied
  std::uint32_t payload_bytes_;
  std::uint32_t first_payload_;  ///< octets of the first fragment
  std::uint32_t later_payload_;  ///< octets of each of the others, the last one's left out
  std::uint32_t count_;
  std::uint8_t later_options_[40] = {};
};

}  // namespace catena::packet
