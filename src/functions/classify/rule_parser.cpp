// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/rule_parser.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/escape.hpp>
#include <catena/packet/headers.hpp>

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace catena::classify {
namespace {

constexpr std::uint32_t kMaxPort = 0xFFFF;
constexpr std::uint8_t kWholeByte = 0xFF;

constexpr std::string_view kReadableForm =
    "write a rule as `action protocol source destination source-port destination-port`, "
    "e.g. `deny tcp 10.0.0.0/8 any 1024-65535 443`";
constexpr std::string_view kClassBenchForm =
    "write a ClassBench rule as `@source destination low : high low : high protocol/mask`, "
    "e.g. `@10.0.0.0/8 0.0.0.0/0 1024 : 65535 443 : 443 0x06/0xFF`";

struct ProtocolName {
  std::string_view name;
  std::uint8_t number;
  std::uint8_t mask = kWholeByte;
};
constexpr std::array<ProtocolName, 8> kProtocols{{
    {"tcp", packet::kProtocolTcp},
    {"udp", packet::kProtocolUdp},
    {"icmp", packet::kProtocolIcmp},
    {"esp", packet::kProtocolEsp},
    {"ah", 51},
    {"gre", 47},
    {"ip", 0, 0},
    {"any", 0, 0},
}};

/// Whether some packet that the rule's protocol matches can have ports.
bool may_have_ports(Rule const& rule) {
  const auto matches = [&rule](std::uint8_t protocol) { return (protocol & rule.protocol_mask) == rule.protocol; };
  return matches(packet::kProtocolTcp) || matches(packet::kProtocolUdp);
}

/// Goes to the next word of a rule; an error says that `what` is missing.
Status next_word(nf::TextCursor& cursor, std::string_view what, std::string_view form) {
  cursor.skip_blanks();
  return cursor.at_end() ? cursor.error(concat("the ", what, " is missing; ", form)) : absl::OkStatus();
}

Status parse_prefix(nf::TextCursor& cursor, std::string_view what, std::string_view alternatives,
                    packet::Ipv4Prefix& prefix) {
  const nf::TextCursor start = cursor;
  if (!cursor.prefix(prefix)) {
    return cursor.error(concat(cursor.quoted_word(), " is no ", what, "; write an IPv4 prefix", alternatives,
                               "; IPv6 is not supported", leading_zeros_advice(cursor.word())));
  }
  if ((prefix.address & ~prefix.mask()) != 0) {
    return start.error(concat("the ", what, " has bits set after its prefix length; write ",
                              to_string(packet::Ipv4Prefix{prefix.address & prefix.mask(), prefix.length}),
                              ", or a longer prefix"));
  }
  return absl::OkStatus();
}

Status empty_range(nf::TextCursor const& start, std::string_view what, std::uint32_t first, std::uint32_t last) {
  return start.error(
      concat("the ", what, " range ends before it starts; write the lower port first: ", last, " and ", first));
}

PortRange range(std::uint32_t first, std::uint32_t last) {
  return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

// --- the readable form

bool accept_any(nf::TextCursor& cursor) {
  if (cursor.word() != "any") {
    return false;
  }
  cursor.skip(3);
  return true;
}

Status parse_protocol(nf::TextCursor& cursor, Rule& rule) {
  const std::string_view word = cursor.word();
  const auto* found =
      std::find_if(kProtocols.begin(), kProtocols.end(), [word](auto const& known) { return known.name == word; });
  if (found != kProtocols.end()) {
    rule.protocol = found->number;
    rule.protocol_mask = found->mask;
    cursor.skip(word.size());
    return absl::OkStatus();
  }
  std::uint32_t number = 0;
  if (!cursor.number_word(kWholeByte, number)) {
    return cursor.error(concat(cursor.quoted_word(),
                               " is no protocol; write tcp, udp, icmp, esp, ah, gre, any, or a number from 0 to 255",
                               leading_zeros_advice(word)));
  }
  rule.protocol = static_cast<std::uint8_t>(number);
  rule.protocol_mask = kWholeByte;
  return absl::OkStatus();
}

Status parse_address(nf::TextCursor& cursor, std::string_view what, packet::Ipv4Prefix& prefix) {
  CATENA_RETURN_IF_ERROR(next_word(cursor, what, kReadableForm));
  if (accept_any(cursor)) {
    prefix = {0, 0};
    return absl::OkStatus();
  }
  return parse_prefix(cursor, what, " such as 10.0.0.0/8, an address, or any", prefix);
}

/// `any`, `443` or `1024-65535`.
Status parse_ports(nf::TextCursor& cursor, std::string_view what, Rule const& rule, PortRange& ports) {
  CATENA_RETURN_IF_ERROR(next_word(cursor, what, kReadableForm));
  if (accept_any(cursor)) {
    ports = {};
    return absl::OkStatus();
  }
  const nf::TextCursor start = cursor;
  std::uint32_t first = 0;
  bool good = cursor.number(kMaxPort, first);
  std::uint32_t last = first;
  if (good && cursor.accept('-')) {
    good = cursor.number(kMaxPort, last);
  }
  if (!good || !cursor.at_gap()) {
    return start.error(concat(start.quoted_word(), " is no ", what,
                              "; write any, a number from 0 to 65535, or a range such as 1024-65535",
                              leading_zeros_advice(start.word())));
  }
  if (first > last) {
    return empty_range(start, what, first, last);
  }
  if (!may_have_ports(rule)) {
    return start.error(concat("packets of protocol ", int{rule.protocol}, " have no ports; write any as the ", what));
  }
  ports = range(first, last);
  return absl::OkStatus();
}

/// Actions of other firewalls, in small letters, and the action here.
struct OtherAction {
  std::string_view word;
  std::string_view action;
};
constexpr std::array<OtherAction, 9> kOtherActions{{
    {"allow", "allow"},
    {"accept", "allow"},
    {"permit", "allow"},
    {"pass", "allow"},
    {"deny", "deny"},
    {"drop", "deny"},
    {"reject", "deny"},
    {"block", "deny"},
    {"discard", "deny"},
}};

/// "; did you mean 'deny'?", or empty.
std::string meant_action(std::string_view word) {
  const auto found = std::ranges::find(
      kOtherActions, absl::AsciiStrToLower(absl::string_view(word.data(), word.size())), &OtherAction::word);
  return found == kOtherActions.end() ? std::string() : concat("; did you mean '", found->action, "'?");
}

Status parse_readable(nf::TextCursor& cursor, Rule& rule) {
  const std::string_view action = cursor.word();
  if (action != "allow" && action != "deny") {
    return cursor.error(concat(cursor.quoted_word(), " begins no rule", meant_action(action), "; ", kReadableForm,
                               "; the action is allow or deny; ClassBench lines begin with @"));
  }
  rule.action = action == "allow" ? Action::kAllow : Action::kDeny;
  cursor.skip(action.size());
  CATENA_RETURN_IF_ERROR(next_word(cursor, "protocol", kReadableForm));
  CATENA_RETURN_IF_ERROR(parse_protocol(cursor, rule));
  CATENA_RETURN_IF_ERROR(parse_address(cursor, "source", rule.src));
  CATENA_RETURN_IF_ERROR(parse_address(cursor, "destination", rule.dst));
  CATENA_RETURN_IF_ERROR(parse_ports(cursor, "source port", rule, rule.sport));
  return parse_ports(cursor, "destination port", rule, rule.dport);
}

// --- ClassBench

Status parse_classbench_prefix(nf::TextCursor& cursor, std::string_view what, packet::Ipv4Prefix& prefix) {
  CATENA_RETURN_IF_ERROR(next_word(cursor, what, kClassBenchForm));
  return parse_prefix(cursor, what, " such as 10.0.0.0/8; all addresses are 0.0.0.0/0", prefix);
}

/// `1024 : 65535`, with or without the blanks.
Status parse_classbench_ports(nf::TextCursor& cursor, std::string_view what, PortRange& ports) {
  CATENA_RETURN_IF_ERROR(next_word(cursor, what, kClassBenchForm));
  const nf::TextCursor start = cursor;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool good = cursor.number(kMaxPort, first);
  cursor.skip_blanks();
  good = good && cursor.accept(':');
  cursor.skip_blanks();
  if (!good || !cursor.number(kMaxPort, last) || !cursor.at_gap()) {
    return start.error(concat("at ", start.quoted_word(), ": no ", what,
                              " range; write `low : high` with ports from 0 to 65535, without leading zeros; "
                              "all ports are 0 : 65535"));
  }
  if (first > last) {
    return empty_range(start, what, first, last);
  }
  ports = range(first, last);
  return absl::OkStatus();
}

/// A number, hexadecimal after 0x, else decimal; the whole of `text`.
bool parse_number(std::string_view text, std::uint32_t maximum, std::uint32_t& value) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) {
    const std::optional<std::uint64_t> number = parse_decimal(text, maximum);
    value = static_cast<std::uint32_t>(number.value_or(0));
    return number.has_value();
  }
  text.remove_prefix(2);
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, 16);
  return error == std::errc{} && last == end && value <= maximum;
}

/// A word `value/mask`.
bool parse_masked(nf::TextCursor& cursor, std::uint32_t maximum, std::uint32_t& value, std::uint32_t& mask) {
  const std::string_view word = cursor.word();
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos || !parse_number(word.substr(0, slash), maximum, value) ||
      !parse_number(word.substr(slash + 1), maximum, mask)) {
    return false;
  }
  cursor.skip(word.size());
  return true;
}

Status parse_classbench_protocol(nf::TextCursor& cursor, Rule& rule) {
  CATENA_RETURN_IF_ERROR(next_word(cursor, "protocol", kClassBenchForm));
  const nf::TextCursor start = cursor;
  std::uint32_t value = 0;
  std::uint32_t mask = 0;
  if (!parse_masked(cursor, kWholeByte, value, mask)) {
    return cursor.error(concat(cursor.quoted_word(),
                               " is no protocol; write value/mask, e.g. 0x06/0xFF; all protocols are 0x00/0x00",
                               leading_zeros_advice(cursor.word())));
  }
  if ((value & ~mask) != 0) {
    return start.error(
        fmt::format("the protocol has bits set outside its mask; write 0x{:02x}/0x{:02x}", value & mask, mask));
  }
  rule.protocol = static_cast<std::uint8_t>(value);
  rule.protocol_mask = static_cast<std::uint8_t>(mask);
  return absl::OkStatus();
}

Status parse_classbench(nf::TextCursor& cursor, Rule& rule, bool& has_flags) {
  cursor.accept('@');
  CATENA_RETURN_IF_ERROR(parse_classbench_prefix(cursor, "source", rule.src));
  CATENA_RETURN_IF_ERROR(parse_classbench_prefix(cursor, "destination", rule.dst));
  CATENA_RETURN_IF_ERROR(parse_classbench_ports(cursor, "source port", rule.sport));
  CATENA_RETURN_IF_ERROR(parse_classbench_ports(cursor, "destination port", rule.dport));
  CATENA_RETURN_IF_ERROR(parse_classbench_protocol(cursor, rule));
  cursor.skip_blanks();
  if (!cursor.at_end()) {
    std::uint32_t flags = 0;
    std::uint32_t mask = 0;
    if (!parse_masked(cursor, 0xFFFF, flags, mask)) {
      return cursor.error(concat(cursor.quoted_word(),
                                 " is no TCP flags column; write value/mask, e.g. 0x0000/0x0000, or leave it out",
                                 leading_zeros_advice(cursor.word())));
    }
    has_flags = mask != 0;
  }
  return absl::OkStatus();
}

}  // namespace

Result<RuleFile> parse_rules(std::string_view text, std::string_view file, Action classbench_action) {
  RuleFile result;
  nf::TextCursor cursor(text, file);
  while (cursor.next_line()) {
    if (result.rules.size() == kMaxRules) {
      return cursor.error(concat("more than ", kMaxRules, " rules; merge or delete some"));
    }
    Rule rule;
    if (cursor.peek() == '@') {
      rule.action = classbench_action;
      bool has_flags = false;
      CATENA_RETURN_IF_ERROR(parse_classbench(cursor, rule, has_flags));
      result.flagged_lines += has_flags ? 1U : 0U;
    } else {
      CATENA_RETURN_IF_ERROR(parse_readable(cursor, rule));
    }
    cursor.skip_blanks();
    if (!cursor.at_end()) {
      return cursor.error(concat("unexpected ", cursor.quoted_word(), " after the rule; a line holds one rule"));
    }
    result.rules.push_back(rule);
  }
  if (result.rules.empty()) {
    return absl::InvalidArgumentError(concat(escaped(file), ":1:1: no rules; ", kReadableForm,
                                             ", or `allow any any any any any` to let everything pass"));
  }
  return result;
}

Result<RuleFile> load_rules(std::string const& path, Action classbench_action) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxRuleFileBytes));
  return parse_rules(text, path, classbench_action);
}

}  // namespace catena::classify
