// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Position of the VLAN tag in an Ethernet frame (IEEE 802.1Q): after both MAC addresses.
namespace catena::io {

inline constexpr std::uint32_t kMacBytes = 12;  ///< both addresses
inline constexpr std::uint32_t kVlanBytes = 4;  ///< type and TCI
inline constexpr std::uint16_t kVlanType = 0x8100;

}  // namespace catena::io
