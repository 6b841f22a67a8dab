// SPDX-License-Identifier: Apache-2.0
#include "base/core/scale.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <span>

namespace catena {
namespace {

struct Prefix {
  double factor;
  std::string_view letter;
};
constexpr std::array<Prefix, 8> kPrefixes{
    {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}}};
constexpr std::size_t kFromOne = 5;  ///< number of prefixes down to 1

std::string scaled(double value, std::string_view unit, std::span<const Prefix> prefixes) {
  constexpr double kRoundsUp = 0.9995;  // 999.5 k is 1.00 M
  if (!(value > 0)) {
    return fmt::format("0 {}", unit);
  }
  Prefix used = prefixes.back();
  for (Prefix const& prefix : prefixes) {
    if (value >= prefix.factor * kRoundsUp) {
      used = prefix;
      break;
    }
  }
  const double shown = value / used.factor;
  constexpr double kNoDigit = 99.95;
  constexpr double kOneDigit = 9.995;
  constexpr double kTwoDigits = 0.9995;
  const int digits = shown >= kNoDigit ? 0 : shown >= kOneDigit ? 1 : shown >= kTwoDigits ? 2 : 3;
  return fmt::format("{:.{}f} {}{}", shown, digits, used.letter, unit);
}

}  // namespace

std::string time_text(double seconds) { return scaled(seconds, "s", kPrefixes); }

std::string rate_text(double per_second, std::string_view unit) {
  return scaled(per_second, unit, std::span(kPrefixes).first<kFromOne>());
}

}  // namespace catena
