// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/lpm/lpm.layout.hpp"

namespace catena::lpm {

/// The number of the next hop for `address` (host order), kNoHop without a matching route. `top_at(i)` and `low_at(i)`
/// are entries of LookupTable::tbl24 and tbl8. For kernels, and for the host over the same tables.
template <typename Entry, typename TopAt, typename LowAt>
inline u32 find_hop(u32 address, TopAt top_at, LowAt low_at) {
  constexpr Entry kFlag = kGroupFlag<Entry>;
  const Entry top = top_at(address >> 8);
  if ((top & kFlag) == 0) {
    return top;
  }
  const u64 group = static_cast<u64>(static_cast<Entry>(top & static_cast<Entry>(~kFlag)));
  return low_at(group * 256 + (address & 0xFF));
}

}  // namespace catena::lpm
