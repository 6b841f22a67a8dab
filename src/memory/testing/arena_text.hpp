// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace catena::memory::testing {

/// A line of numbers, as the reader of an arena tells them and its test expects them.
template <typename... Values>
std::string line(std::string_view name, Values... values) {
  std::string text(name);
  ((text += concat(" ", +values)), ...);
  return text + "\n";
}

/// FNV-1a, 64 bits.
inline std::uint64_t digest(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::uint8_t byte : bytes) {
    hash = (hash ^ byte) * 1099511628211U;
  }
  return hash;
}

}  // namespace catena::memory::testing
