// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace catena::match {
namespace {

constexpr std::string_view kSpaces = " \t\r";

bool is_space(char c) { return kSpaces.find(c) != std::string_view::npos; }

/// [begin, end) of `text` without the spaces around it.
Word trimmed(std::string_view text, std::size_t begin, std::size_t end) {
  while (begin < end && is_space(text[begin])) {
    ++begin;
  }
  while (end > begin && is_space(text[end - 1])) {
    --end;
  }
  return {text.substr(begin, end - begin), begin};
}

bool is_option_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return std::nullopt;
}

/// Words of the header; a list in brackets is one word, spaces and all.
std::vector<Word> header_words(std::string_view header) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (at < header.size()) {
    if (is_space(header[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    int depth = 0;
    for (; at < header.size() && (depth > 0 || !is_space(header[at])); ++at) {
      depth += header[at] == '[' ? 1 : header[at] == ']' ? -1 : 0;
    }
    words.push_back({header.substr(begin, at - begin), begin});
  }
  return words;
}

/// Whether a value opens double quotes and does not close them.
bool quotes_stay_open(std::string_view value) {
  std::size_t at = value.starts_with('!') ? 1 : 0;
  while (at < value.size() && is_space(value[at])) {
    ++at;
  }
  if (at >= value.size() || value[at] != '"') {
    return false;
  }
  for (++at; at < value.size() && value[at] != '"'; ++at) {
    at += value[at] == '\\' ? 1 : 0;
  }
  return at >= value.size();
}

}  // namespace

void RuleLine::append(std::string_view piece, Position start) {
  pieces_.push_back({text_.size(), start});
  text_ += piece;
}

RuleLine::Position RuleLine::position(std::size_t offset) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                      [](std::size_t value, Piece const& piece) { return value < piece.offset; });
  Piece const& piece = after == pieces_.begin() ? pieces_.front() : *std::prev(after);
  return {piece.start.line, piece.start.column + static_cast<std::uint32_t>(offset - piece.offset)};
}

std::vector<RuleLine> split_rules(std::string_view text) {
  std::vector<RuleLine> rules;
  bool continued = false;
  std::uint32_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const Word line = trimmed(text, at, end);
    ++number;
    if (!continued && (line.text.empty() || line.text.front() == '#')) {
      at = end + 1;
      continue;
    }
    const bool continues = !line.text.empty() && line.text.back() == '\\';
    if (!continued) {
      rules.emplace_back();
    }
    // The spaces before a continuation belong to the rule: they may part two words.
    const std::size_t begin = continued ? at : line.offset;
    const std::size_t length = line.offset + line.text.size() - (continues ? 1 : 0) - begin;
    rules.back().append(text.substr(begin, length), {number, static_cast<std::uint32_t>(begin - at + 1)});
    continued = continues;
    at = end + 1;
  }
  return rules;
}

std::variant<RuleText, TextError> read_rule(std::string_view rule) {
  RuleText result;
  const std::size_t open = rule.find('(');
  if (open == std::string_view::npos) {
    return TextError{rule.size(), "expected '(' and the rule's options"};
  }
  result.header = header_words(rule.substr(0, open));
  const Word all = trimmed(rule, 0, rule.size());
  const std::size_t close = all.offset + all.text.size() - 1;
  if (close == open || rule[close] != ')') {
    return TextError{close + 1, "expected ')' at the end of the rule"};
  }

  std::size_t begin = open + 1;
  for (std::size_t at = begin; at < close; ++at) {
    if (rule[at] == '\\') {
      ++at;
      continue;
    }
    if (rule[at] != ';') {
      continue;
    }
    const std::size_t colon = std::min(rule.find(':', begin), at);
    Option option{trimmed(rule, begin, colon), std::nullopt};
    if (!is_option_name(option.name.text)) {
      return TextError{option.name.offset, fmt::format("'{}' is no option name", option.name.text)};
    }
    if (colon < at) {
      option.value = trimmed(rule, colon + 1, at);
      if (quotes_stay_open(option.value->text)) {
        return TextError{at, "the quotes before this semicolon do not end; write \\; for a semicolon in quotes"};
      }
    }
    result.options.push_back(option);
    begin = at + 1;
  }
  if (const Word rest = trimmed(rule, std::min(begin, close), close); !rest.text.empty()) {
    return TextError{close, fmt::format("expected ';' after '{}'", rest.text.substr(0, 40))};
  }
  return result;
}

std::variant<std::string, TextError> read_quoted(Word word, bool hex) {
  const std::string_view text = word.text;
  if (text.size() < 2 || text.front() != '"') {
    return TextError{word.offset, "expected a value in double quotes"};
  }
  std::string bytes;
  bool in_hex = false;
  std::optional<int> high;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    const char c = text[at];
    if (hex && c == '|') {
      if (high) {
        return TextError{word.offset + at, "a byte in |...| takes two hex digits"};
      }
      in_hex = !in_hex;
    } else if (in_hex) {
      const std::optional<int> digit = hex_digit(c);
      if (!digit && c != ' ') {
        return TextError{word.offset + at, fmt::format("'{}' is no hex digit; |...| holds bytes as in |0d 0a|", c)};
      }
      if (digit && high) {
        bytes += static_cast<char>(*high * 16 + *digit);
        high.reset();
      } else if (digit) {
        high = digit;
      }
    } else if (c == '\\') {
      ++at;
      if (at >= text.size() || std::string_view("\"\\;:").find(text[at]) == std::string_view::npos) {
        return TextError{word.offset + at - 1, "a backslash may only escape \" \\ ; or :; write |5c| for a backslash"};
      }
      bytes += text[at];
    } else {
      bytes += c;
    }
  }
  if (in_hex) {
    return TextError{word.offset + std::min(at, text.size() - 1), "'|' is missing: the hex bytes do not end"};
  }
  if (at >= text.size()) {
    return TextError{word.offset + text.size() - 1, "'\"' is missing; write \\; for a semicolon in quotes"};
  }
  if (at + 1 != text.size()) {
    return TextError{word.offset + at + 1,
                     "unexpected text after the quotes; modifiers are options of their own: content:\"x\"; nocase;"};
  }
  return bytes;
}

}  // namespace catena::match
