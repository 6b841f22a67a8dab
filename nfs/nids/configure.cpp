// SPDX-License-Identifier: Apache-2.0
#include "configure.hpp"

#include "functions/match/rule_parser.hpp"
#include "functions/match/set_expression.hpp"
#include "nids.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/refusal.hpp>
#include <catena/nf/text_file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace catena::nids {
namespace {

constexpr std::array<nf::ConfigKey, 8> kConfig{{
    {"rules", "file", "", "rules, one per line; either this or `strings` is required"},
    {"strings", "file", "", "strings to search for, one per line; either this or `rules` is required"},
    {"variables", "mapping", "the usual ones, HOME_NET: any", "values of $NAME in rule headers; with `rules`"},
    {"classification", "file", "",
     "a classification.config: description and priority of each classtype for alerts; with `rules`"},
    {"on_refused", "warn | error", "warn", "unsupported rules: warn about them, or refuse the chain; with `rules`"},
    {"on_error", "error | skip", "error",
     "rules of broken form: refuse the chain, or warn about them and apply the others; with `rules`"},
    {"nocase", "boolean", "false", "search for the strings without regard to case; with `strings`"},
    {"string_action", "alert | drop", "alert", "verdict for packets containing a string; with `strings`"},
}};

/// Keys that a list of strings cannot have.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kForRules{{
    {"variables", "strings have no addresses"},
    {"classification", "strings have no classtype"},
    {"on_refused", "no string is refused"},
    {"on_error", "no string is skipped"},
}};
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

Result<match::Variables> read_variables(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(nf::Config section, config.section_or_empty("variables"));
  std::vector<match::Variables::Definition> definitions;
  for (std::string const& name : section.keys()) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> parts, section.strings(name));
    definitions.push_back(
        {name, parts.size() == 1 ? parts[0] : fmt::format("[{}]", fmt::join(parts, ",")), section.position(name)});
  }
  CATENA_RETURN_IF_ERROR(section.finish());
  auto variables = match::Variables::create(definitions);
  if (auto* failure = std::get_if<match::Variables::Failure>(&variables)) {
    return absl::InvalidArgumentError(escaped(fmt::format("{}: {}", failure->position, failure->message)));
  }
  return std::get<match::Variables>(std::move(variables));
}

Result<Classification> read_classification(nf::Config& config) {
  if (!config.has("classification")) {
    return Classification();
  }
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("classification"));
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  return Classification::parse(text, path);
}

/// What an operator wants of the rules that are not applied.
struct Policy {
  bool refuses_any = false;  ///< an unsupported rule is an error
  match::OnError on_error = match::OnError::kFail;
};

bool is_broken(nf::Refusal const& refusal) { return refusal.reason == match::kBroken; }

/// A warning for each broken rule, as many as a list of errors has.
void warn_of_broken(match::RuleFile const& file, std::string const& path, std::vector<std::string>& report) {
  std::size_t count = 0;
  for (nf::Refusal const& refusal : file.refused) {
    if (is_broken(refusal) && ++count <= match::kMaxErrors) {
      report.push_back(concat(nf::kWarning, nf::to_string(refusal)));
    }
  }
  if (count > match::kMaxErrors) {
    report.push_back(
        concat(nf::kWarning, path, ": ", count - match::kMaxErrors, " more broken rules; `catena check -v` lists all"));
  }
}

/// "147 rules loaded, 3 refused: dsize 2, pcre 1" and what else an operator must know.
std::vector<std::string> report_of(match::RuleFile const& file, std::string const& path) {
  std::vector<std::string> report{fmt::format("{} rules loaded, {} refused{}{}", file.rules.size(), file.refused.size(),
                                              file.refused.empty() ? "" : ": ", nf::reasons_of(file.refused))};
  if (!file.refused.empty()) {
    report.push_back(
        fmt::format("first refused: {}; `catena check -v` lists all", nf::to_string(file.refused.front())));
  }
  if (file.replaced > 0) {
    report.push_back(fmt::format("{} rules replaced by a newer revision", file.replaced));
  }
  const auto flows =
      std::count_if(file.rules.begin(), file.rules.end(), [](match::Rule const& rule) { return rule.has_flow; });
  if (flows > 0) {
    report.push_back(
        fmt::format("{} rules name flow, which is not evaluated: packets are inspected one by one", flows));
  }
  warn_of_broken(file, path, report);
  return report;
}

/// The reason why the chain must not start with the refused rules; OK if it may.
Status refusal_status(match::RuleFile const& file, std::string const& path, bool refuse_any) {
  std::vector<nf::Refusal> refused = file.refused;
  const bool has_unsupported = !std::ranges::all_of(refused, is_broken);
  const bool is_refused = refuse_any && has_unsupported;
  if (!is_refused && (refused.empty() || !file.rules.empty())) {
    return absl::OkStatus();
  }
  if (is_refused) {
    std::erase_if(refused, is_broken);  // `on_error` is about these
  }
  std::string message = is_refused ? fmt::format("{}: {} rules are refused ({}), and the chain has on_refused: error",
                                                 escaped(path), refused.size(), nf::reasons_of(refused))
                                   : fmt::format("{}: every rule is refused ({}): this NF would search for nothing",
                                                 escaped(path), nf::reasons_of(refused));
  for (std::size_t i = 0; i < std::min(refused.size(), match::kMaxErrors); ++i) {
    message += fmt::format("\n{}", nf::to_string(refused[i]));
  }
  if (refused.size() > match::kMaxErrors) {
    message += fmt::format("\n{}: {} more refused rules", escaped(path), refused.size() - match::kMaxErrors);
  }
  return absl::InvalidArgumentError(message);
}

Result<std::unique_ptr<nf::Nf>> create_with_rules(std::string const& path, match::Variables const& variables,
                                                  Classification classes, Policy policy) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  match::RuleFile file = match::parse_rules(text, path, variables, policy.on_error);
  if (!file.errors.empty()) {
    std::string message = fmt::format("{}", fmt::join(file.errors, "\n"));
    if (policy.on_error == match::OnError::kFail && file.error_count > file.errors.size()) {
      message += fmt::format("\n{}: {} more errors", escaped(path), file.error_count - file.errors.size());
    }
    return absl::InvalidArgumentError(message);
  }
  CATENA_RETURN_IF_ERROR(refusal_status(file, path, policy.refuses_any));
  std::vector<std::string> report = report_of(file, path);
  match::PatternSet patterns;
  RuleSet rules{Evaluator(std::move(file.rules), patterns)};
  return Nids::create(
      {path, std::move(patterns), std::move(rules), std::move(classes), std::move(report), std::move(file.refused)});
}

Result<std::unique_ptr<nf::Nf>> create_with_strings(std::string const& path, bool nocase, packet::Verdict verdict) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  match::PatternSet patterns;
  CATENA_ASSIGN_OR_RETURN(match::StringList list, match::StringList::parse(text, path, nocase, patterns));
  std::vector<std::string> report{fmt::format("{} strings loaded{}", list.size(), nocase ? ", nocase" : "")};
  return Nids::create({path, std::move(patterns), StringSet{std::move(list), verdict}, {}, std::move(report), {}});
}

}  // namespace

std::span<const nf::ConfigKey> config_keys() { return kConfig; }

Result<std::unique_ptr<nf::Nf>> create_nids(nf::Config& config) {
  const bool rules = config.has("rules");
  if (rules == config.has("strings")) {
    return config.error("", rules ? "'rules' and 'strings' exclude each other; use two NFs"
                                  : "missing key 'rules' (a rule file) or 'strings' (a list of strings)");
  }
  if (rules) {
    for (std::string_view key : {"nocase", "string_action"}) {
      if (config.has(key)) {
        return config.error(key, fmt::format("'{}' goes with 'strings'; rules specify it themselves", key));
      }
    }
    CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("rules"));
    CATENA_ASSIGN_OR_RETURN(const match::Variables variables, read_variables(config));
    CATENA_ASSIGN_OR_RETURN(const std::string on_refused, config.one_of("on_refused", {"warn", "error"}, "warn"));
    CATENA_ASSIGN_OR_RETURN(const std::string on_error, config.one_of("on_error", {"error", "skip"}, "error"));
    CATENA_ASSIGN_OR_RETURN(Classification classes, read_classification(config));
    CATENA_RETURN_IF_ERROR(config.finish());
    return create_with_rules(
        path, variables, std::move(classes),
        {on_refused == "error", on_error == "skip" ? match::OnError::kSkip : match::OnError::kFail});
  }
  for (auto const& [key, why] : kForRules) {
    if (config.has(key)) {
      return config.error(key, fmt::format("'{}' goes with 'rules'; {}", key, why));
    }
  }
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("strings"));
  CATENA_ASSIGN_OR_RETURN(const bool nocase, config.boolean_or("nocase", false));
  CATENA_ASSIGN_OR_RETURN(const std::string action, config.one_of("string_action", {"alert", "drop"}, "alert"));
  CATENA_RETURN_IF_ERROR(config.finish());
  return create_with_strings(path, nocase, action == "drop" ? packet::Verdict::kDrop : packet::Verdict::kAlert);
}

}  // namespace catena::nids
