// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/copy/body_copy.hpp"

namespace catena::copy {

inline constexpr std::uint32_t kStagingAlign = 16;
/// Maximum bytes of a packet in staging.
inline constexpr std::size_t kMaxStagedBytes = packet::kSlotBytes + 2 * kStagingAlign;

/// Slot bytes of a packet's body, from the metadata.
struct MemoryPlace {
  std::uint32_t begin;
  std::uint32_t end;
};
MemoryPlace place_of(Bodies const& bodies, std::uint32_t slot);

std::unique_ptr<BodyCopy> make_staged(Direction direction);
std::unique_ptr<BodyCopy> make_strided(Direction direction);
std::unique_ptr<BodyCopy> make_gather(Direction direction);

}  // namespace catena::copy
