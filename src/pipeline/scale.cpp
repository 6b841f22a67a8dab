// SPDX-License-Identifier: Apache-2.0
#include "pipeline/scale.hpp"

#include <fmt/format.h>

#include <array>

namespace catena::runtime {

std::string scaled(double value, std::string_view unit) {
  struct Prefix {
    double factor;
    std::string_view letter;
  };
  constexpr std::array<Prefix, 8> kPrefixes{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}}};
  constexpr double kRoundsUp = 0.9995;  // 999.5 k is 1.00 M
  if (!(value > 0)) {
    return fmt::format("0 {}", unit);
  }
  Prefix used = kPrefixes.back();
  for (Prefix const& prefix : kPrefixes) {
    if (value >= prefix.factor * kRoundsUp) {
      used = prefix;
      break;
    }
  }
  const double shown = value / used.factor;
  constexpr double kTwoDigits = 99.95;
  constexpr double kOneDigit = 9.995;
  return fmt::format("{:.{}f} {}{}", shown, shown >= kTwoDigits ? 0 : shown >= kOneDigit ? 1 : 2, used.letter, unit);
}

}  // namespace catena::runtime
