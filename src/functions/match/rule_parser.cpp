// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_parser.hpp"

#include "functions/match/rule_reader.hpp"
#include "functions/match/rule_text.hpp"

#include <catena/core/escape.hpp>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace catena::match {
namespace {

/// Reads the rules of one file, one after another.
class FileReader {
 public:
  FileReader(std::string const& file, Variables const& variables, OnError on_error)
      : file_(file), variables_(variables), on_error_(on_error) {}

  void read(RuleLine const& line) {
    const auto parts = read_rule(line.text());
    if (const auto* error = std::get_if<TextError>(&parts)) {
      return add_error(line, *error);
    }
    RuleReader reader(std::get<RuleText>(parts), line.text().size(), variables_, sets_);
    reader.read();
    if (reader.refused()) {
      return refuse(line, reader.refused()->offset, reader.refused()->what, {});
    }
    if (reader.error()) {
      return add_error(line, *reader.error());
    }
    add(line, reader.sid_offset(), std::move(reader.rule()));
  }

  bool has_too_many_errors() const { return on_error_ == OnError::kSkip && result_.error_count > kMaxSkipped; }
  RuleFile finish() {
    if (has_too_many_errors()) {
      result_.errors.push_back(
          escaped(fmt::format("{}: more than {} broken rules; this is no rule file", file_, kMaxSkipped)));
    }
    return std::move(result_);
  }

 private:
  /// Where the rule of an identity is.
  struct Known {
    std::size_t index;  ///< in result_.rules
    std::uint32_t line;
  };

  void add_error(RuleLine const& line, TextError const& error) {
    ++result_.error_count;
    if (on_error_ == OnError::kSkip) {
      return refuse(line, error.offset, kBroken, error.message);
    }
    if (result_.errors.size() < kMaxErrors) {
      const auto [number, column] = line.position(error.offset);
      result_.errors.push_back(escaped(fmt::format("{}:{}:{}: {}", file_, number, column, error.message)));
    }
  }

  void refuse(RuleLine const& line, std::size_t offset, std::string_view reason, std::string_view detail) {
    const auto [number, column] = line.position(offset);
    result_.refused.push_back({file_, number, column, escaped(reason), escaped(detail)});
  }

  void add(RuleLine const& line, std::size_t sid_offset, Rule rule) {
    const std::uint32_t number = line.position(sid_offset).line;
    const auto [known, is_new] =
        rules_.try_emplace({rule.labels.generator, rule.sid}, Known{result_.rules.size(), number});
    if (is_new) {
      result_.rules.push_back(std::move(rule));
      return;
    }
    Rule& before = result_.rules[known->second.index];
    if (rule.labels.revision <= before.labels.revision) {
      return add_error(line, {sid_offset, fmt::format("sid {}{} is taken by the rule in line {}; write another sid, or "
                                                      "a rev above {} to replace that rule",
                                                      rule.sid,
                                                      rule.labels.generator == RuleLabels().generator
                                                          ? ""
                                                          : fmt::format(" of gid {}", rule.labels.generator),
                                                      known->second.line, before.labels.revision)});
    }
    before = std::move(rule);
    known->second.line = number;
    ++result_.replaced;
  }

  std::string const& file_;
  Variables const& variables_;
  OnError on_error_;
  SetPool sets_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Known> rules_;  ///< by gid and sid
  RuleFile result_;
};

}  // namespace

RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables, OnError on_error) {
  FileReader reader(file, variables, on_error);
  for (RuleLine const& line : split_rules(text)) {
    reader.read(line);
    if (reader.has_too_many_errors()) {
      break;
    }
  }
  return reader.finish();
}

}  // namespace catena::match
