// SPDX-License-Identifier: Apache-2.0
#include "functions/match/set_expression.hpp"

#include "functions/match/rule.hpp"

#include <catena/packet/address.hpp>
#include <catena/packet/ipv4_prefix.hpp>

#include <absl/strings/match.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>

namespace catena::match {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t maximum) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > maximum) {
    return std::nullopt;
  }
  return value;
}

bool is_any(std::string_view text) { return absl::EqualsIgnoreCase({text.data(), text.size()}, "any"); }

bool is_ipv6(std::string_view text) { return text.find(':') != std::string_view::npos && packet::Address::parse(text); }

/// An IPv6 address, prefix or range.
bool is_ipv6_atom(std::string_view text) {
  constexpr std::uint32_t kAddressBits = 128;
  const std::size_t end = std::min(text.find_first_of("/-"), text.size());
  const std::string_view tail = text.substr(std::min(end + 1, text.size()));
  return is_ipv6(text.substr(0, end)) &&
         (end == text.size() || (text[end] == '/' ? parse_number(tail, kAddressBits).has_value() : is_ipv6(tail)));
}

/// The prefix of "10.0.0.0/8" or "10.0.0.0/255.0.0.0".
std::optional<packet::Ipv4Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ipv4_address(text.substr(0, slash));
  const auto mask = parse_ipv4_address(text.substr(slash + 1));
  if (address && mask && (~*mask & (~*mask + 1)) == 0) {  // ones, then zeros
    return packet::Ipv4Prefix{*address, static_cast<std::uint8_t>(std::popcount(*mask))};
  }
  return packet::Ipv4Prefix::parse(text);
}

/// Recursive descent over one expression. The first error is kept; after it every function returns at once.
class SetParser {
 public:
  SetParser(SetKind kind, std::string_view text, Variables const& variables)
      : kind_(kind), text_(text), variables_(variables) {}

  /// The elements and what they make together, or the error.
  std::variant<std::pair<SignedSet, IntervalSet>, SetError> parse() {
    SignedSet elements = expression(0);
    skip_spaces();
    if (!error_ && at_ != text_.size()) {
      fail(at_, fmt::format("unexpected '{}'; put several elements in brackets: [A,B]", text_[at_]));
    }
    IntervalSet set = settle(elements);
    if (!error_ && set.empty() && elements.has_ipv6) {
      refuse(0, "this matches IPv6 packets alone; IPv6 is not supported", "IPv6 address");
    }
    if (!error_ && set.empty()) {
      refuse(0, fmt::format("this matches no {} at all", what()), fmt::format("matches no {}", what()));
    }
    if (error_) {
      return *std::move(error_);
    }
    return std::pair(std::move(elements), std::move(set));
  }

 private:
  std::uint32_t maximum() const { return kind_ == SetKind::kAddress ? kMaxAddress : kMaxPort; }
  std::string_view what() const { return kind_ == SetKind::kAddress ? "address" : "port"; }
  IntervalSet everything() const { return {0, maximum()}; }

  void fail(std::size_t offset, std::string message) {
    if (!error_) {
      error_ = SetError{offset, std::move(message), {}};
    }
  }
  /// What is well-formed, but nothing that can be applied.
  void refuse(std::size_t offset, std::string message, std::string why) {
    if (!error_) {
      error_ = SetError{offset, std::move(message), std::move(why)};
    }
  }
  void skip_spaces() {
    while (at_ < text_.size() && is_blank(text_[at_])) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  IntervalSet settle(SignedSet const& elements) const {
    return (elements.included.empty() && !elements.excluded.empty() ? everything() : elements.included)
        .without(elements.excluded, maximum());
  }

  SignedSet expression(int depth) {
    const bool negated = take('!');
    SignedSet elements = element(depth);
    return negated ? SignedSet{{}, settle(elements), elements.has_ipv6} : elements;
  }

  SignedSet element(int depth) {
    skip_spaces();
    if (take('[')) {
      return list(depth + 1);
    }
    if (take('$')) {
      return variable();
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']' && text_[at_] != '[' && !is_blank(text_[at_])) {
      ++at_;
    }
    const std::string_view atom = text_.substr(begin, at_ - begin);
    if (atom.empty()) {
      fail(begin, fmt::format("{0} is missing; write any, one {0}, a range or a list", what()));
      return {};
    }
    if (is_any(atom)) {
      return {everything(), {}};
    }
    if (kind_ == SetKind::kAddress && is_ipv6_atom(atom)) {
      return {{}, {}, true};
    }
    return {kind_ == SetKind::kAddress ? address(begin, atom) : port(begin, atom), {}};
  }

  SignedSet list(int depth) {
    const std::size_t begin = at_ - 1;
    if (depth > kMaxListDepth) {
      fail(begin, fmt::format("lists nest deeper than {}", kMaxListDepth));
      return {};
    }
    std::vector<IntervalSet::Interval> included;
    std::vector<IntervalSet::Interval> excluded;
    bool has_ipv6 = false;
    do {
      const SignedSet elements = expression(depth);
      const auto& more = elements.included.intervals();
      const auto& less = elements.excluded.intervals();
      included.insert(included.end(), more.begin(), more.end());
      excluded.insert(excluded.end(), less.begin(), less.end());
      has_ipv6 |= elements.has_ipv6;
      if (included.size() + excluded.size() > kMaxIntervals) {
        fail(begin, fmt::format("this list has more than {} ranges", kMaxIntervals));
      }
      if (error_) {
        return {};
      }
    } while (take(','));
    if (!take(']')) {
      fail(at_, "expected ',' or ']' in this list");
      return {};
    }
    return {IntervalSet::of(std::move(included)), IntervalSet::of(std::move(excluded)), has_ipv6};
  }

  SignedSet variable() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) {
      ++at_;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (SignedSet const* elements = variables_.find(kind_, name)) {
      return *elements;
    }
    std::string known;
    for (std::string const& other : variables_.names(kind_)) {
      known += (known.empty() ? "$" : ", $") + other;
    }
    if (variables_.known(name)) {
      fail(begin - 1,
           fmt::format("variable ${} does not hold {}", name, kind_ == SetKind::kAddress ? "addresses" : "ports"));
    } else {
      refuse(begin - 1,
             fmt::format("unknown variable ${}; define it under `variables:`, or use one of {}", name, known),
             fmt::format("undefined variable ${}", name));
    }
    return {};
  }

  IntervalSet address(std::size_t begin, std::string_view atom) {
    const std::size_t slash = atom.find('/');
    const std::size_t dash = atom.find('-');
    if (slash != std::string_view::npos) {
      if (const auto prefix = parse_prefix(atom)) {
        return {prefix->address & prefix->mask(), prefix->address | ~prefix->mask()};
      }
    } else if (dash != std::string_view::npos) {
      const auto first = parse_ipv4_address(atom.substr(0, dash));
      const auto last = parse_ipv4_address(atom.substr(dash + 1));
      if (first && last && *first <= *last) {
        return {*first, *last};
      }
    } else if (const auto single = parse_ipv4_address(atom)) {
      return {*single, *single};
    }
    fail(begin, fmt::format("'{}' is no IPv4 address; write 10.0.0.1, 10.0.0.0/8, 10.0.0.1-10.0.0.9 or any", atom));
    return {};
  }

  IntervalSet port(std::size_t begin, std::string_view atom) {
    const std::size_t colon = atom.find(':');
    const std::string_view low = atom.substr(0, colon);
    const std::string_view high = colon == std::string_view::npos ? low : atom.substr(colon + 1);
    const auto first = low.empty() ? std::optional<std::uint32_t>(0) : parse_number(low, kMaxPort);
    const auto last = high.empty() ? std::optional<std::uint32_t>(kMaxPort) : parse_number(high, kMaxPort);
    if (atom == ":" || !first || !last || *first > *last) {
      fail(begin, fmt::format("'{}' is no port; write 80, 1024:2048, 1024:, :1023 or any, up to {}", atom, kMaxPort));
      return {};
    }
    return {*first, *last};
  }

  SetKind kind_;
  std::string_view text_;
  Variables const& variables_;
  std::size_t at_ = 0;
  std::optional<SetError> error_;
};

/// The names that the usual rule sets rely on, those of Suricata's own suricata.yaml, with values that inspect
/// everything.
constexpr std::array<std::pair<const char*, const char*>, 26> kDefaults = {{
    {"HOME_NET", "any"},
    {"EXTERNAL_NET", "any"},
    {"HTTP_SERVERS", "$HOME_NET"},
    {"SMTP_SERVERS", "$HOME_NET"},
    {"SQL_SERVERS", "$HOME_NET"},
    {"DNS_SERVERS", "$HOME_NET"},
    {"TELNET_SERVERS", "$HOME_NET"},
    {"DC_SERVERS", "$HOME_NET"},
    {"DNP3_SERVER", "$HOME_NET"},
    {"DNP3_CLIENT", "$HOME_NET"},
    {"MODBUS_SERVER", "$HOME_NET"},
    {"MODBUS_CLIENT", "$HOME_NET"},
    {"ENIP_SERVER", "$HOME_NET"},
    {"ENIP_CLIENT", "$HOME_NET"},
    {"AIM_SERVERS", "$EXTERNAL_NET"},
    {"HTTP_PORTS", "80"},
    {"SHELLCODE_PORTS", "!80"},
    {"ORACLE_PORTS", "1521"},
    {"SSH_PORTS", "22"},
    {"FTP_PORTS", "21"},
    {"FILE_DATA_PORTS", "[$HTTP_PORTS,110,143]"},
    {"DNP3_PORTS", "20000"},
    {"MODBUS_PORTS", "502"},
    {"GENEVE_PORTS", "6081"},
    {"VXLAN_PORTS", "4789"},
    {"TEREDO_PORTS", "3544"},
}};

std::vector<std::string> references(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at)) {
    const std::size_t begin = ++at;
    while (at < text.size() && is_name(text[at])) {
      ++at;
    }
    names.emplace_back(text.substr(begin, at - begin));
  }
  return names;
}

}  // namespace

SetResult parse_set(SetKind kind, std::string_view text, Variables const& variables) {
  auto result = SetParser(kind, text, variables).parse();
  if (auto* error = std::get_if<SetError>(&result)) {
    return std::move(*error);
  }
  return std::get<0>(std::move(result)).second;
}

SignedSet const* Variables::find(SetKind kind, std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    return nullptr;
  }
  std::optional<SignedSet> const& set = kind == SetKind::kAddress ? found->second.addresses : found->second.ports;
  return set ? &*set : nullptr;
}

std::vector<std::string> Variables::names(SetKind kind) const {
  std::vector<std::string> names;
  for (auto const& [name, value] : values_) {
    if (kind == SetKind::kAddress ? value.addresses.has_value() : value.ports.has_value()) {
      names.push_back(name);
    }
  }
  return names;
}

Variables::Variables() {
  std::vector<Definition> definitions;
  for (auto const& [name, text] : kDefaults) {
    definitions.push_back({name, text, {}});
  }
  resolve(definitions);
}

std::variant<Variables, Variables::Failure> Variables::create(std::span<const Definition> definitions) {
  std::vector<Definition> all(definitions.begin(), definitions.end());
  for (auto const& [name, text] : kDefaults) {
    if (std::none_of(definitions.begin(), definitions.end(),
                     [&name = name](auto const& given) { return given.name == name; })) {
      all.push_back({name, text, {}});
    }
  }
  Variables variables{Empty{}};
  if (auto failure = variables.resolve(all)) {
    return *std::move(failure);
  }
  return variables;
}

std::optional<Variables::Failure> Variables::resolve(std::span<const Definition> definitions) {
  struct Open {
    Definition const* definition;
    std::vector<std::string> needs;
  };
  std::vector<Open> open;
  std::set<std::string, std::less<>> open_names;
  for (Definition const& definition : definitions) {
    open.push_back({&definition, references(definition.text)});
    open_names.insert(definition.name);
  }
  // Each round evaluates those that wait for no other; the rest then refers to itself.
  while (!open.empty()) {
    std::vector<Open> waiting;
    for (Open& next : open) {
      if (std::any_of(next.needs.begin(), next.needs.end(), [&](auto const& name) { return open_names.count(name); })) {
        waiting.push_back(std::move(next));
        continue;
      }
      Definition const* definition = next.definition;
      auto addresses = SetParser(SetKind::kAddress, definition->text, *this).parse();
      auto ports = SetParser(SetKind::kPort, definition->text, *this).parse();
      Value value;
      if (auto* sets = std::get_if<0>(&addresses)) {
        value.addresses = std::move(sets->first);
      }
      if (auto* sets = std::get_if<0>(&ports)) {
        value.ports = std::move(sets->first);
      }
      if (!value.addresses && !value.ports) {
        return Failure{
            definition->position,
            fmt::format("variable {}: '{}' holds neither addresses ({}) nor ports ({})", definition->name,
                        definition->text, std::get<SetError>(addresses).message, std::get<SetError>(ports).message)};
      }
      values_.insert_or_assign(definition->name, std::move(value));
      open_names.erase(definition->name);
    }
    if (waiting.size() == open.size()) {
      Definition const& first = *waiting.front().definition;
      return Failure{first.position, fmt::format("variable {}: '{}' refers to itself", first.name, first.text)};
    }
    open = std::move(waiting);
  }
  return std::nullopt;
}

}  // namespace catena::match
