// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// The EtherType of a frame (IEEE 802.3, 802.1Q) and the tags before it. Thread rule: pure functions, any thread.
namespace catena::packet {

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
/// Up to this value the field is the length of the frame, and LLC follows.
inline constexpr std::uint16_t kMaxLlcLength = 1500;

/// The EtherTypes of VLAN tags: of 802.1Q, of service tags by 802.1ad, and of service tags before that standard.
inline constexpr std::uint16_t kVlanTag = 0x8100;
inline constexpr std::array<std::uint16_t, 4> kTagTypes{kVlanTag, 0x88A8, 0x9100, 0x9200};
constexpr bool is_tag(std::uint16_t type) {
  bool is_one = false;
  for (const std::uint16_t tag : kTagTypes) {
    is_one |= type == tag;
  }
  return is_one;
}
inline constexpr std::uint32_t kEtherTypeAt = 12;  ///< of the first EtherType: after both MAC addresses
inline constexpr std::uint32_t kTagBytes = 4;      ///< EtherType and TCI
/// Tags before the headers that parse() finds.
inline constexpr std::uint32_t kMaxTags = 2;

/// An EtherType, and the offset of the first byte after it.
struct EtherType {
  std::uint16_t type;
  std::uint32_t end;
};
/// The EtherType after up to `max_tags` tags. It is that of a tag if the frame has more tags, or ends in one.
/// Precondition: `length`, the bytes of the frame, is at least 14.
inline EtherType ether_type_of(const std::uint8_t* frame, std::uint32_t length, std::uint32_t max_tags = kMaxTags) {
  const auto load = [frame](std::uint32_t at) { return static_cast<std::uint16_t>(frame[at] << 8 | frame[at + 1]); };
  EtherType found{load(kEtherTypeAt), kEtherTypeAt + 2};
  for (std::uint32_t tag = 0; tag < max_tags && is_tag(found.type) && length >= found.end + kTagBytes; ++tag) {
    found = {load(found.end + 2), found.end + kTagBytes};
  }
  return found;
}

}  // namespace catena::packet
