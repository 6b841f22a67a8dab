// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

/// Hashes with equal results in every process, so that parallel instances and consecutive runs choose the same
/// backends.
namespace catena::lb {

/// A 64-bit bijection in which every input bit affects every output bit (the finalizer of MurmurHash3 with the
/// constants of Stafford's variant 13).
constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9U;
  value = (value ^ value >> 27) * 0x94D049BB133111EBU;
  return value ^ value >> 31;
}

/// FNV-1a over the bytes, mixed.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3U;
  }
  return mix(hash);
}

}  // namespace catena::lb
