// SPDX-License-Identifier: Apache-2.0
#include "nf/yaml_errors.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace catena::nf {
namespace {

struct PlainWords {
  std::string_view parsed;  ///< how yaml-cpp's message begins
  std::string_view plain;
};

constexpr std::string_view kIndentation =
    "the indentation of this line matches no line above; entries of one mapping or list begin in one column";
constexpr std::string_view kColon =
    "unexpected ':'; put a text with ': ' in it into quotes, or check the indentation of this line";
constexpr std::array<PlainWords, 7> kPlainWords{{
    {"end of map not found", kIndentation},
    {"end of sequence not found", kIndentation},
    {"illegal block entry", "unexpected '- '; check the indentation of this line and the end of the line above"},
    {"illegal map value", kColon},
    {"illegal map key", kColon},
    {"illegal EOF in scalar", "a quote is not closed"},
    {"illegal tab when looking", "tabs do not indent YAML; write spaces"},
}};

struct Bracket {
  char opener;
  std::size_t line;
  std::size_t column;
};

/// Follows the brackets of a text, character by character. Brackets in quotes, comments and plain words do not count.
class Brackets {
 public:
  /// An error if `c` is a bracket that closes no open one, or another one.
  std::optional<YamlError> take(char c, std::size_t line, std::size_t column) {
    const char before = std::exchange(before_, c);
    if (c == '\n') {
      in_comment_ = false;
    }
    if (in_comment_) {
      return std::nullopt;
    }
    if (quote_ != 0) {
      if (c == quote_ && !(quote_ == '"' && is_escaped_)) {
        quote_ = 0;
      }
      is_escaped_ = c == '\\' && !is_escaped_;
      return std::nullopt;
    }
    const bool starts_value = std::string_view(" \t\n[{,:").find(before) != std::string_view::npos;
    if (c == '#' && (before == ' ' || before == '\t' || before == '\n')) {
      in_comment_ = true;
    } else if ((c == '"' || c == '\'') && starts_value) {
      quote_ = c;
      is_escaped_ = false;
    } else if ((c == '[' || c == '{') && (starts_value || !open_.empty())) {
      open_.push_back({c, line, column});
    } else if ((c == ']' || c == '}') && !open_.empty()) {
      const char wanted = closer_of(open_.back().opener);
      if (c != wanted) {
        return YamlError{line, column,
                         concat("'", c, "' does not close the '", open_.back().opener, "' of line ",
                                open_.back().line + 1, "; write '", wanted, "'")};
      }
      open_.pop_back();
    }
    return std::nullopt;
  }

  /// That the innermost open bracket is not closed; nullopt if all are.
  std::optional<YamlError> unclosed() const {
    if (open_.empty()) {
      return std::nullopt;
    }
    Bracket const& last = open_.back();
    return YamlError{last.line, last.column,
                     concat("'", last.opener, "' is not closed; '", closer_of(last.opener), "' is missing")};
  }

 private:
  static char closer_of(char opener) { return opener == '[' ? ']' : '}'; }

  std::vector<Bracket> open_;
  char before_ = '\n';
  char quote_ = 0;
  bool is_escaped_ = false;
  bool in_comment_ = false;
};

/// That the indentation of the line has a tab; nullopt if it has none.
std::optional<YamlError> tab_in(std::string_view text, std::size_t line) {
  for (std::size_t i = 0; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  const std::string_view indentation = text.substr(0, text.find_first_not_of(" \t"));
  const std::size_t tab = indentation.find('\t');
  return tab == std::string_view::npos ? std::nullopt
                                       : std::optional(YamlError{line, tab, std::string(kPlainWords.back().plain)});
}

}  // namespace

YamlError explain_yaml_error(std::string_view text, YamlError parsed) {
  if (std::optional<YamlError> tab = tab_in(text, parsed.line)) {
    return *std::move(tab);
  }
  Brackets brackets;
  std::size_t line = 0;
  std::size_t column = 0;
  for (const char c : text) {
    if (line > parsed.line || (line == parsed.line && column > parsed.column)) {
      break;
    }
    if (std::optional<YamlError> error = brackets.take(c, line, column)) {
      return *std::move(error);
    }
    line += c == '\n' ? 1 : 0;
    column = c == '\n' ? 0 : column + 1;
  }
  if (std::optional<YamlError> error = brackets.unclosed()) {
    return *std::move(error);
  }
  const auto known = std::ranges::find_if(
      kPlainWords, [&parsed](PlainWords const& words) { return parsed.message.starts_with(words.parsed); });
  if (known != kPlainWords.end()) {
    parsed.message = known->plain;
  }
  return parsed;
}

}  // namespace catena::nf
