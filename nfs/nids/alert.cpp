// SPDX-License-Identifier: Apache-2.0
#include "alert.hpp"

#include <nlohmann/json.hpp>

namespace catena::nids {
namespace {

std::string to_text(match::RuleLabels const& labels, std::uint32_t sid, bool dropped, std::string const& category,
                    std::uint32_t severity) {
  const nlohmann::ordered_json json{{"action", dropped ? "blocked" : "allowed"},
                                    {"gid", labels.generator},
                                    {"signature_id", sid},
                                    {"rev", labels.revision},
                                    {"signature", labels.message},
                                    {"category", category},
                                    {"severity", severity}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string alert_of_rule(match::Rule const& rule, Classification const& classes) {
  match::RuleLabels const& labels = rule.labels;
  Classification::Class const* known = classes.find(labels.classtype);
  const std::uint32_t by_class = known != nullptr ? known->priority : kDefaultSeverity;
  const std::string category = known != nullptr ? known->description : classes.empty() ? labels.classtype : "";
  return to_text(labels, rule.sid, rule.action == match::Action::kDrop, category, labels.priority.value_or(by_class));
}

std::string alert_of_string(std::uint32_t line, std::string_view string, bool dropped) {
  match::RuleLabels labels;
  labels.message = string;
  return to_text(labels, line, dropped, "", kDefaultSeverity);
}

}  // namespace catena::nids
