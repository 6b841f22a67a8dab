// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/copy/body_copy.hpp>

namespace catena::copy {

inline constexpr std::uint32_t kRoomAlign = 16;
/// Bytes of a packet's room, at most.
inline constexpr std::size_t kMostRoom = packet::kSlotBytes + 2 * kRoomAlign;

/// Slot bytes of a packet's body, as the metadata has it.
struct Place {
  std::uint32_t begin;
  std::uint32_t end;
};
Place place_of(Bodies const& bodies, std::uint32_t slot);

std::unique_ptr<BodyCopy> make_staged(Way way);
std::unique_ptr<BodyCopy> make_strided(Way way);
std::unique_ptr<BodyCopy> make_mapped(Way way);

}  // namespace catena::copy
