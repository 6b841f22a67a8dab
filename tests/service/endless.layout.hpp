// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

namespace catena::endless {

struct State {
  u64 rounds;
};

struct EndlessResult {
  u32 value;
};

}  // namespace catena::endless
