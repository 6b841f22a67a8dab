// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

/// Common to all kinds of launches.
namespace catena::copy {

inline constexpr std::size_t kBufferAlign = 64;
inline constexpr std::uint32_t kRowAlign = 16;
inline constexpr std::uint32_t kFrameAlign = 16;
inline constexpr std::chrono::seconds kSetUpLimit{120};
inline constexpr std::uint8_t kPoison = 0xA5;  // initial content of device memory, which reveals unwritten bytes

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace catena::copy
