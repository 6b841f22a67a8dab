// SPDX-License-Identifier: Apache-2.0
// The part of RuleReader that reads contents, what modifies them, and what is between them.
#include "functions/match/pattern_set.hpp"
#include "functions/match/rule_reader.hpp"
#include "functions/match/rule_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace catena::match {
namespace {

/// Modifiers without a value.
constexpr std::array<std::string_view, 3> kMarks = {"nocase", "startswith", "endswith"};
constexpr std::string_view kFastPatternOnly = "fast_pattern:only";
/// Modifiers that one content cannot have together.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kContradictions{{
    {"distance", "offset"},
    {"distance", "depth"},
    {"within", "offset"},
    {"within", "depth"},
    {"startswith", "offset"},
    {"startswith", "depth"},
    {"startswith", "distance"},
    {"startswith", "within"},
    {kFastPatternOnly, "offset"},
    {kFastPatternOnly, "depth"},
    {kFastPatternOnly, "distance"},
    {kFastPatternOnly, "within"},
    {kFastPatternOnly, "startswith"},
}};

}  // namespace

/// False if the option is none of a content.
bool RuleReader::read_content_option(Option const& option) {
  const std::string_view name = option.name.text;
  if (std::ranges::find(kMarks, name) != kMarks.end()) {
    read_mark(option);
    return true;
  }
  if (name == "fast_pattern") {
    read_fast_pattern(option);
    return true;
  }
  const bool is_place = name == "offset" || name == "depth" || name == "distance" || name == "within";
  if ((!is_place && name != "content" && name != "isdataat") || !option.value || option.value->text.empty()) {
    return false;
  }
  if (is_place) {
    read_place(option);
  } else if (name == "content") {
    read_content(*option.value);
  } else {
    read_isdataat(*option.value);
  }
  return true;
}

void RuleReader::read_content(Word value) {
  finish_content();
  Content content;
  if (value.text.front() == '!') {
    content.negated = true;
    std::size_t skip = 1;
    while (skip < value.text.size() && value.text[skip] == ' ') {
      ++skip;
    }
    value = {value.text.substr(skip), value.offset + skip};
  }
  auto bytes = take(read_quoted(value, /*hex=*/true));
  if (!bytes) {
    return;
  }
  content.bytes = *std::move(bytes);
  if (content.bytes.empty() || content.bytes.size() > kMaxContentBytes) {
    fail(value.offset, fmt::format("a content has 1 to {} bytes, this has {}", kMaxContentBytes, content.bytes.size()));
    return;
  }
  rule_.contents.push_back(std::move(content));
  rule_.needs_payload = true;
  modifiers_.clear();
}

/// The content that a modifier belongs to: the last one before it.
Content* RuleReader::content_for(Option const& option, std::string_view name) {
  if (rule_.contents.empty()) {
    fail(option.name.offset, fmt::format("{} needs a content before it", name));
    return nullptr;
  }
  if (!modifiers_.emplace(name, option.name.offset).second) {
    fail(option.name.offset, fmt::format("the content has {} already", name));
    return nullptr;
  }
  return &rule_.contents.back();
}

/// The options of kMarks: they have no value.
void RuleReader::read_mark(Option const& option) {
  const std::string_view name = option.name.text;
  if (option.value) {
    fail(option.value->offset, fmt::format("{} takes no value", name));
  }
  Content* content = content_for(option, name);
  if (content == nullptr) {
    return;
  }
  if (name == "nocase") {
    content->nocase = true;
  } else if (name == "endswith") {
    content->at_end = true;
  } else {
    content->depth = static_cast<std::int32_t>(content->bytes.size());
  }
}

/// offset, depth, distance, within.
void RuleReader::read_place(Option const& option) {
  const std::string_view name = option.name.text;
  Content* content = content_for(option, name);
  const std::int32_t minimum = name == "distance" ? -kMaxContentRange : name == "offset" ? 0 : 1;
  const auto number = take(read_number(*option.value, minimum, kMaxContentRange));
  if (content == nullptr || !number) {
    return;
  }
  const auto bytes = static_cast<std::int32_t>(*number);
  if (name == "offset") {
    content->offset = bytes;
  } else if (name == "depth") {
    content->depth = bytes;
  } else if (name == "distance") {
    content->distance = bytes;
  } else {
    content->within = bytes;
  }
}

/// `fast_pattern`, `fast_pattern:only`, `fast_pattern:OFFSET,LENGTH`: which content, or which part of it, to search for
/// first. It says how to search; the packets that match are the same without it.
void RuleReader::read_fast_pattern(Option const& option) {
  once(option);
  Content* content = content_for(option, "fast_pattern");
  if (content == nullptr) {
    return;
  }
  if (!content->negated) {
    rule_.search_content = rule_.contents.size() - 1;
  }
  if (!option.value) {
    return;
  }
  const std::vector<Word> parts = split_commas(*option.value);
  if (parts.size() == 1 && parts[0].text == "only") {
    modifiers_.emplace(kFastPatternOnly, option.name.offset);
    return;
  }
  if (parts.size() != 2) {
    fail(option.value->offset, "fast_pattern takes nothing, only, or OFFSET,LENGTH of a part of the content");
    return;
  }
  const auto offset = take(read_number(parts[0], 0, kMaxContentRange));
  const auto length = take(read_number(parts[1], 0, kMaxContentRange));
  if (offset && length && *offset + *length > static_cast<std::int64_t>(content->bytes.size())) {
    fail(parts[0].offset, fmt::format("{} bytes from byte {} on are more than the content has, {}", *length, *offset,
                                      content->bytes.size()));
  }
}

/// `isdataat:N`, `!N`, with `,relative` and after that `,rawbytes`.
void RuleReader::read_isdataat(Word value) {
  std::vector<Word> parts = split_commas(value);
  DataAt data;
  if (parts[0].text.starts_with('!')) {
    data.negated = true;
    parts[0] = {parts[0].text.substr(1), parts[0].offset + 1};
  }
  const bool relative = parts.size() > 1;
  if (parts.size() > 3 || (relative && parts[1].text != "relative") ||
      (parts.size() == 3 && parts[2].text != "rawbytes")) {
    fail(value.offset, "isdataat takes N or !N, then maybe ,relative and ,rawbytes");
    return;
  }
  const auto number = take(read_number(parts[0], 0, kMaxContentRange));
  if (!number) {
    return;
  }
  data.bytes = static_cast<std::int32_t>(*number);
  rule_.needs_payload = true;
  if (relative && !rule_.contents.empty()) {
    rule_.contents.back().data_after.push_back(data);
    return;
  }
  // From the start of the payload on, `relative` asks for N bytes, and without it for a byte after N others.
  const std::uint32_t least = static_cast<std::uint32_t>(data.bytes) + (relative ? 0U : 1U);
  const IntervalSet long_enough = least > kMaxPayloadBytes ? IntervalSet() : IntervalSet(least, kMaxPayloadBytes);
  narrow(rule_.conditions.payload_bytes, data.negated ? long_enough.complement(kMaxPayloadBytes) : long_enough,
         kMaxPayloadBytes);
}

/// Checks the modifiers of the last content together: they may be in any order.
void RuleReader::finish_content() {
  if (stopped() || rule_.contents.empty()) {
    return;
  }
  Content& content = rule_.contents.back();
  const auto offset_of = [&](std::string_view name) { return modifiers_.find(name)->second; };
  for (auto const& [one, other] : kContradictions) {
    if (modifiers_.count(one) != 0 && modifiers_.count(other) != 0) {
      fail(offset_of(one), fmt::format("{} and {} contradict each other on one content", one, other));
    }
  }
  if (content.negated && modifiers_.count(kFastPatternOnly) != 0) {
    fail(offset_of(kFastPatternOnly), "a negated content cannot be fast_pattern:only");
  }
  content.relative = modifiers_.count("distance") != 0 || modifiers_.count("within") != 0;
  const auto length = static_cast<std::int32_t>(content.bytes.size());
  for (std::string_view name : {"depth", "within"}) {
    std::optional<std::int32_t> const& limit = name == "depth" ? content.depth : content.within;
    if (limit && *limit < length) {
      fail(offset_of(name), fmt::format("{} {} leaves no room for a content of {} bytes", name, *limit, length));
    }
  }
  if (content.nocase) {
    fold_case(content.bytes);
  }
}

}  // namespace catena::match
