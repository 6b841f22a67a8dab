// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace catena::match::testing {

/// Random numbers, equal in each run.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  /// 0 .. limit - 1.
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  /// True in `percent` percent of the calls.
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  std::string text(std::string_view alphabet, std::uint32_t length) {
    std::string text;
    for (std::uint32_t i = 0; i < length; ++i) {
      text += alphabet[below(static_cast<std::uint32_t>(alphabet.size()))];
    }
    return text;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace catena::match::testing
