// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <emmintrin.h>

#include <catena/packet/slot.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

/// Writes frames as a network card does, for sources of synthetic traffic.
namespace catena::io {

struct alignas(packet::kCacheLineBytes) CacheLine {
  std::array<std::uint8_t, packet::kCacheLineBytes> bytes;
};

/// Writes a whole line past the caches. Its old content, uncached since the device wrote it, is not read first. `to` is
/// aligned to a cache line.
inline void write_line(std::uint8_t* to, CacheLine const& line) {
  for (std::size_t at = 0; at < packet::kCacheLineBytes; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(line.bytes.data() + at)));
  }
}
/// Makes the lines visible to other threads.
inline void finish_lines() { _mm_sfence(); }

}  // namespace catena::io
