// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace catena::match {
namespace {

Word trimmed(std::string_view text, std::size_t offset) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
    ++offset;
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return {text, offset};
}

std::optional<std::uint32_t> number_in(std::string_view text, std::uint32_t maximum) {
  text = trimmed(text, 0).text;
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  return text.empty() || problem != std::errc{} || stop != end || number > maximum ? std::nullopt
                                                                                   : std::optional(number);
}

/// [first, last], or nothing where there is no such number.
IntervalSet between(std::int64_t first, std::int64_t last) {
  return first > last ? IntervalSet()
                      : IntervalSet(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last));
}

/// A number after one of the operators.
IntervalSet compared(std::string_view sign, std::int64_t number, std::int64_t maximum) {
  if (sign == "<") {
    return between(0, number - 1);
  }
  if (sign == "<=") {
    return between(0, number);
  }
  if (sign == ">") {
    return between(number + 1, maximum);
  }
  if (sign == ">=") {
    return between(number, maximum);
  }
  const IntervalSet one = between(number, number);
  return sign.starts_with('!') ? one.complement(static_cast<std::uint32_t>(maximum)) : one;
}

std::optional<std::uint8_t> flag_of(char letter) {
  constexpr std::array<std::pair<char, std::uint8_t>, 11> kFlags{{{'F', 0x01},
                                                                  {'S', 0x02},
                                                                  {'R', 0x04},
                                                                  {'P', 0x08},
                                                                  {'A', 0x10},
                                                                  {'U', 0x20},
                                                                  {'2', 0x40},
                                                                  {'E', 0x40},
                                                                  {'1', 0x80},
                                                                  {'C', 0x80},
                                                                  {'0', 0x00}}};
  const auto found =
      std::find_if(kFlags.begin(), kFlags.end(), [letter](auto const& flag) { return flag.first == letter; });
  return found == kFlags.end() ? std::nullopt : std::optional(found->second);
}

std::optional<TcpFlags::Mode> mode_of(char letter) {
  switch (letter) {
    case '+':
      return TcpFlags::Mode::kAll;
    case '*':
      return TcpFlags::Mode::kAny;
    case '!':
      return TcpFlags::Mode::kNotAll;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::variant<std::int64_t, TextError> read_number(Word value, std::int64_t minimum, std::int64_t maximum) {
  std::int64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, problem] = std::from_chars(value.text.data(), end, number);
  if (problem != std::errc{} || stop != end || number < minimum || number > maximum) {
    return TextError{value.offset, fmt::format("'{}' is no number from {} to {}", value.text, minimum, maximum)};
  }
  return number;
}

std::variant<IntervalSet, TextError> read_number_set(Word value, std::uint32_t maximum) {
  const std::string_view text = value.text;
  IntervalSet set;
  for (std::string_view range : {"<>", "-"}) {
    const std::size_t at = text.find(range);
    if (at == std::string_view::npos) {
      continue;
    }
    const auto low = number_in(text.substr(0, at), maximum);
    const auto high = number_in(text.substr(at + range.size()), maximum);
    if (low && high) {
      set = between(std::int64_t{*low} + 1, std::int64_t{*high} - 1);
    }
    if (set.empty()) {
      return TextError{value.offset,
                       fmt::format("'{}' is no range with a number inside, up to {}; 5<>9 is 6 to 8", text, maximum)};
    }
    return set;
  }
  const std::size_t digits = std::min(text.find_first_not_of("<>=!"), text.size());
  const std::string_view sign = text.substr(0, digits);
  constexpr std::array<std::string_view, 8> kSigns = {"", "=", "!", "!=", "<", "<=", ">", ">="};
  const auto number = number_in(text.substr(digits), maximum);
  if (number && std::find(kSigns.begin(), kSigns.end(), sign) != kSigns.end()) {
    set = compared(sign, *number, maximum);
    if (set.empty()) {
      return TextError{value.offset, fmt::format("no number up to {} is '{}'", maximum, text)};
    }
    return set;
  }
  return TextError{value.offset,
                   fmt::format("'{}' is no number up to {}; write 8, !8, <8, <=8, >8, >=8 or 5<>9", text, maximum)};
}

std::variant<TcpFlags, TextError> read_tcp_flags(Word value) {
  const std::vector<Word> parts = split_commas(value);
  TcpFlags flags;
  bool has_mode = false;
  bool has_flag = false;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t i = 0; i < parts[part].text.size(); ++i) {
      const char letter = parts[part].text[i];
      const auto flag = flag_of(letter);
      const auto mode = mode_of(letter);
      if (part == 0 && mode && !has_mode) {
        flags.mode = *mode;
        has_mode = true;
      } else if (flag && (part == 0 || letter != '0')) {
        std::uint8_t& set = part == 0 ? flags.flags : flags.ignored;
        set = static_cast<std::uint8_t>(set | *flag);
        has_flag = has_flag || part == 0;
      } else {
        return TextError{parts[part].offset + i,
                         fmt::format("'{}' has no place here; write flags of FSRPAU12CE or 0, with one of +*! before "
                                     "them, and after a comma flags to ignore: S,12",
                                     letter)};
      }
    }
  }
  if (!has_flag || parts.size() > 2 || parts.back().text.empty()) {
    return TextError{value.offset, fmt::format("'{}' is no list of flags; write S, A+, !SA, 0 or S,12", value.text)};
  }
  return flags;
}

std::vector<Word> split_commas(Word list) {
  std::vector<Word> words;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(list.text.find(',', begin), list.text.size());
    words.push_back(trimmed(list.text.substr(begin, end - begin), list.offset + begin));
    if (end == list.text.size()) {
      return words;
    }
    begin = end + 1;
  }
}

}  // namespace catena::match
