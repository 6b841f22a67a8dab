// SPDX-License-Identifier: Apache-2.0
#include "classification.hpp"

#include "functions/match/rule_values.hpp"

#include <catena/core/escape.hpp>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace catena::nids {
namespace {

constexpr std::string_view kSpaces = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

/// Takes `word` and the spaces after it from the front of `text`. False where something else is there.
bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) {
    return false;
  }
  text = trimmed(text.substr(word.size()));
  return true;
}

/// The class of a line; nothing where it has another form.
std::optional<std::pair<std::string, Classification::Class>> class_in(std::string_view line) {
  if (!take_word(line, "config") || !take_word(line, "classification") || !take_word(line, ":")) {
    return std::nullopt;
  }
  const std::size_t first = line.find(',');
  const std::size_t last = line.rfind(',');
  if (first == last) {  // one comma, or none
    return std::nullopt;
  }
  const std::string_view name = trimmed(line.substr(0, first));
  const auto priority = match::read_number({trimmed(line.substr(last + 1)), 0}, 1, UINT8_MAX);
  if (name.empty() || std::holds_alternative<match::TextError>(priority)) {
    return std::nullopt;
  }
  return std::pair(std::string(name),
                   Classification::Class{std::string(trimmed(line.substr(first + 1, last - first - 1))),
                                         static_cast<std::uint32_t>(std::get<std::int64_t>(priority))});
}

}  // namespace

Result<Classification> Classification::parse(std::string_view text, std::string const& file) {
  Classification result;
  std::uint32_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view whole = text.substr(at, end - at);
    const std::string_view line = trimmed(whole);
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    auto entry = class_in(line);
    if (!entry) {
      return absl::InvalidArgumentError(escaped(fmt::format(
          "{}:{}:{}: expected config classification: NAME,DESCRIPTION,PRIORITY with a priority from 1 to 255", file,
          number, line.data() - whole.data() + 1)));
    }
    result.classes_.insert(*std::move(entry));
  }
  return result;
}

bool Classification::LessIgnoringCase::operator()(std::string_view a, std::string_view b) const {
  return std::ranges::lexicographical_compare(a, b, {}, absl::ascii_tolower, absl::ascii_tolower);
}

Classification::Class const* Classification::find(std::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : &found->second;
}

}  // namespace catena::nids
