// SPDX-License-Identifier: Apache-2.0
// Any text as an IDS rule file: rules, refusals and errors, never a crash; errors and refusals say where. What is read
// is asked of a packet, too. The same text as a classification file.
#include "classification.hpp"
#include "evaluator.hpp"
#include "functions/match/rule_parser.hpp"

#include <catena/core/escape.hpp>

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace match = catena::match;
  namespace nids = catena::nids;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  match::RuleFile file = match::parse_rules(text, "fuzz.rules", {});
  for (std::string const& error : file.errors) {
    if (!error.starts_with("fuzz.rules:") || catena::escaped(error) != error) {
      __builtin_trap();
    }
  }
  if (const match::RuleFile skipped = match::parse_rules(text, "fuzz.rules", {}, match::OnError::kSkip);
      skipped.errors.empty() &&
      (skipped.rules.size() != file.rules.size() || skipped.refused.size() != file.refused.size() + file.error_count)) {
    __builtin_trap();
  }
  for (catena::nf::Refusal const& refusal : file.refused) {
    if (refusal.line == 0 || refusal.column == 0 || refusal.reason.empty() ||
        catena::escaped(to_string(refusal)) != to_string(refusal)) {
      __builtin_trap();
    }
  }
  match::PatternSet patterns;
  nids::Evaluator evaluator(std::move(file.rules), patterns);
  constexpr std::uint32_t kPayloadBytes = 100;
  match::MatchTable matches(patterns.size());
  for (std::uint32_t pattern = 0; pattern < patterns.size(); ++pattern) {
    for (std::size_t end = patterns.patterns()[pattern].bytes.size(); end <= kPayloadBytes; end += 7) {
      matches.add(pattern, static_cast<std::uint32_t>(end));
    }
  }
  std::vector<std::uint32_t> matched;
  evaluator.match({.protocol = match::Protocol::kTcp, .flow = {.has_ports = true}, .tcp_flags = 2}, kPayloadBytes,
                  matches, matched);
  evaluator.match({.protocol = match::Protocol::kIcmp, .icmp_type = 3}, kPayloadBytes, matches, matched);
  if (const auto classes = nids::Classification::parse(text, "fuzz.config");
      !classes.ok() && !std::string(classes.status().message()).starts_with("fuzz.config:")) {
    __builtin_trap();
  }
  return 0;
}
