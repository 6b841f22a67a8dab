// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

/// What the kinds of launches have in common.
namespace catena::kernel {

inline constexpr std::size_t kRegionAlign = 64;
inline constexpr std::uint32_t kRowAlign = 16;
inline constexpr std::uint32_t kFrameAlign = 16;
inline constexpr std::chrono::seconds kSetUpLimit{30};
inline constexpr std::uint8_t kPoison = 0xA5;  // device memory starts with this, so that bytes nobody wrote are seen

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Copies `field` of the packets in `batch` into a column; 0 stands for a header that is not there.
void gather_column(std::uint32_t field, packet::Batch const& batch, std::byte* column);
/// The other way round, into packets that have the header. `skip`: null, or a byte for each packet, not 0 for those to
/// leave alone.
void scatter_column(std::uint32_t field, packet::Batch const& batch, const std::byte* column, const std::byte* skip);

}  // namespace catena::kernel
