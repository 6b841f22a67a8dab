// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/rule.hpp"
#include "functions/match/rule_text.hpp"
#include "functions/match/set_expression.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace catena::match {

/// The sets of all rules so far; equal sets are stored once.
class SetPool {
 public:
  SharedSet share(IntervalSet set);

 private:
  std::map<IntervalSet, SharedSet> sets_;
};

/// Interprets one rule. Keeps the first refusal or error; after it every step returns at once.
/// Keeps references to all its arguments.
class RuleReader {
 public:
  /// `length`: bytes of the rule's text.
  RuleReader(RuleText const& text, std::size_t length, Variables const& variables, SetPool& sets)
      : text_(text), length_(length), variables_(variables), sets_(sets) {}

  void read();

  struct Refused {
    std::size_t offset;
    std::string what;
  };
  std::optional<TextError> const& error() const { return error_; }
  std::optional<Refused> const& refused() const { return refused_; }
  Rule& rule() { return rule_; }
  /// Offset of the value of `sid`.
  std::size_t sid_offset() const { return sid_->offset; }

 private:
  bool stopped() const { return error_ || refused_; }
  void fail(std::size_t offset, std::string message);
  void refuse(std::size_t offset, std::string what);
  /// The value, or nullopt after its error was kept.
  template <typename T>
  std::optional<T> take(std::variant<T, TextError> read) {
    if (auto* problem = std::get_if<TextError>(&read)) {
      fail(problem->offset, std::move(problem->message));
      return std::nullopt;
    }
    return std::get<T>(std::move(read));
  }

  // rule_reader.cpp: the header, and options outside contents
  void read_names();
  void read_header();
  SharedSet read_set(SetKind kind, Word word);
  void read_option(Option const& option);
  void read_value(std::string_view name, Word value);
  std::uint32_t read_uint(Word value, std::uint32_t minimum, std::uint32_t maximum);
  void once(Option const& option);
  void narrow(SharedSet& condition, Word value, std::uint32_t maximum);
  void narrow(SharedSet& condition, IntervalSet const& set, std::uint32_t maximum);
  void read_flow(Word value);
  void refuse_blind_drop();

  // content_options.cpp: contents, their modifiers, and conditions between them
  bool read_content_option(Option const& option);
  void read_content(Word value);
  Content* content_for(Option const& option, std::string_view name);
  void read_mark(Option const& option);
  void read_place(Option const& option);
  void read_fast_pattern(Option const& option);
  void read_isdataat(Word value);
  void finish_content();

  struct Sid {
    std::size_t offset;
  };
  RuleText const& text_;
  std::size_t length_;
  Variables const& variables_;
  SetPool& sets_;
  Rule rule_;
  std::optional<Sid> sid_;
  std::set<std::string_view> seen_;
  std::vector<Word> flow_words_;                       ///< words of `flow` that select packets
  std::map<std::string_view, std::size_t> modifiers_;  ///< of the last content, with their offsets
  std::optional<TextError> error_;
  std::optional<Refused> refused_;
};

}  // namespace catena::match
