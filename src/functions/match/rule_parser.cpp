// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_parser.hpp"

#include "functions/match/rule_reader.hpp"
#include "functions/match/rule_text.hpp"

#include <fmt/format.h>

#include <unordered_map>

namespace catena::match {

RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables) {
  RuleFile result;
  SetPool sets;
  std::unordered_map<std::uint32_t, std::uint32_t> lines_of_sids;
  for (RuleLine const& line : split_rules(text)) {
    const auto add_error = [&](TextError const& error) {
      ++result.error_count;
      if (result.errors.size() < kMaxErrors) {
        const auto [number, column] = line.position(error.offset);
        result.errors.push_back(fmt::format("{}:{}:{}: {}", file, number, column, error.message));
      }
    };
    const auto parts = read_rule(line.text());
    if (const auto* error = std::get_if<TextError>(&parts)) {
      add_error(*error);
      continue;
    }
    RuleReader reader(std::get<RuleText>(parts), line.text().size(), variables, sets);
    reader.read();
    if (reader.refused()) {
      const auto [number, column] = line.position(reader.refused()->offset);
      result.refused.push_back({file, number, column, reader.refused()->what});
      continue;
    }
    if (reader.error()) {
      add_error(*reader.error());
      continue;
    }
    const auto [known, added] = lines_of_sids.emplace(reader.rule().sid, line.position(reader.sid_offset()).line);
    if (!added) {
      add_error({reader.sid_offset(), fmt::format("sid {} is taken by the rule in line {}; each rule needs its own",
                                                  reader.rule().sid, known->second)});
      continue;
    }
    result.rules.push_back(std::move(reader.rule()));
  }
  return result;
}

}  // namespace catena::match
