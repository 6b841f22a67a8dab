// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

namespace catena::nca {

/// Result of NCA_ROUTE's kernel for a packet. Its state is a LookupState.
struct RouteResult {
  u32 hop;  ///< number of the next hop; lpm::kNoHop if no prefix matches
};
static_assert(sizeof(RouteResult) == 4);

}  // namespace catena::nca
