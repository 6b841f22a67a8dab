// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena {

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace catena
