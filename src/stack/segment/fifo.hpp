// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace catena::stack {

/// The part of a FIFO from `position` on, up to `bytes` bytes or to the end of its memory. The FIFO's size is a power
/// of two; positions are counted modulo 2^32.
template <typename Byte>
std::span<Byte> piece_of(std::span<Byte> fifo, std::uint32_t position, std::size_t bytes) {
  const std::size_t at = position & (fifo.size() - 1);
  return fifo.subspan(at, std::min(bytes, fifo.size() - at));
}

}  // namespace catena::stack
