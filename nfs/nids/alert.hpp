// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "classification.hpp"
#include "functions/match/rule.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// The `alert` objects of EVE lines, with Suricata's members. Thread rule: pure functions.
namespace catena::nids {

/// Severity of a rule without a priority and without a known class.
inline constexpr std::uint32_t kDefaultSeverity = 3;

/// `category` is the description of the rule's class, or its name if `classes` is empty.
std::string alert_of_rule(match::Rule const& rule, Classification const& classes);
/// Alert for a string list: `signature_id` is the line, from 0, `signature` the string; bytes that are not UTF-8 are
/// replaced.
std::string alert_of_string(std::uint32_t line, std::string_view string, bool dropped);

}  // namespace catena::nids
