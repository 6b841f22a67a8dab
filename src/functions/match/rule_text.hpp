// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The outer form of a rule file: lines, header words and options, without their meaning.
namespace catena::match {

/// One rule with its continuation lines (a backslash ends each but the last) joined; knows the positions of its bytes
/// in the file.
class RuleLine {
 public:
  struct Position {
    std::uint32_t line;    ///< from 1
    std::uint32_t column;  ///< from 1, in bytes
  };
  void append(std::string_view piece, Position start);
  std::string const& text() const { return text_; }
  Position position(std::size_t offset) const;

 private:
  struct Piece {
    std::size_t offset;
    Position start;
  };
  std::string text_;
  std::vector<Piece> pieces_;
};

/// Splits a file into its rules. Blank lines and lines that start with # are ignored.
std::vector<RuleLine> split_rules(std::string_view text);

/// A part of a rule; `offset` is the position of its first byte in the rule's text.
struct Word {
  std::string_view text;
  std::size_t offset;
};
struct Option {
  Word name;
  std::optional<Word> value;  ///< after the colon, without the spaces around it
};
/// `action protocol source ports direction destination ports (option; option:value; ...)`, views into the rule's text.
struct RuleText {
  std::vector<Word> header;
  std::vector<Option> options;
};
struct TextError {
  std::size_t offset;
  std::string message;
};

/// Splits a rule into its parts. A semicolon ends an option unless a backslash is before it, in quotes too.
std::variant<RuleText, TextError> read_rule(std::string_view rule);

/// The bytes of a content: "..." with |hex| and the escapes \" \\ \; \: (`word` with its quotes). Also used for msg.
std::variant<std::string, TextError> read_quoted(Word word, bool hex);

}  // namespace catena::match
