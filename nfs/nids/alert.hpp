// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "classification.hpp"
#include "functions/match/rule.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// The `alert` objects of EVE lines, with the members that Suricata gives them. Thread rule: pure functions.
namespace catena::nids {

/// Severity of a rule that names neither a priority nor a known class.
inline constexpr std::uint32_t kDefaultSeverity = 3;

/// `category` is the description of the rule's class, or its name where `classes` knows none at all.
std::string alert_of_rule(match::Rule const& rule, Classification const& classes);
/// Of a string list: `signature_id` is the line, from 0, `signature` the string; bytes that are no UTF-8 are replaced.
std::string alert_of_string(std::uint32_t line, std::string_view string, bool dropped);

}  // namespace catena::nids
