// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace catena::fuzz {

/// Numbers that depend on the seed alone: the standard library's distributions differ from one to the other.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  /// 0 .. count - 1; `count` is not 0.
  std::uint32_t below(std::uint64_t count) { return static_cast<std::uint32_t>(engine_() % count); }
  /// first .. last.
  std::uint32_t between(std::uint32_t first, std::uint32_t last) {
    return first + below(std::uint64_t{last} - first + 1);
  }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <typename Values>
  auto const& pick(Values const& values) {
    return values[below(std::size(values))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace catena::fuzz
