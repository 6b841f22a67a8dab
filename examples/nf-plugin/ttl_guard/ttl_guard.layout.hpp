// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

/// What the host code and the kernel of ttl_guard share.
namespace catena::ttl_guard {

struct State {
  u32 minimum;  ///< packets with a smaller TTL are dropped
};
static_assert(sizeof(State) == 4);

struct TtlGuardResult {
  u32 dropped;  ///< 0 or 1
};
static_assert(sizeof(TtlGuardResult) == 4);

}  // namespace catena::ttl_guard
