// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "functions/classify/linear_search.hpp"
#include "functions/classify/rule.hpp"

/// Rules that are hard on tables, and packets for them.
namespace catena::classify::testing {

/// First match by its definition, for rules as returned by the parser.
inline int first_match(std::span<const Rule> rules, Tuple const& packet) {
  const auto in = [](packet::Ipv4Prefix const& prefix, std::uint32_t address) {
    return ((address ^ prefix.address) & prefix.mask()) == 0;
  };
  const auto between = [&](PortRange const& range, std::uint32_t port) {
    return packet.has_ports ? port >= range.first && port <= range.last : range.is_any();
  };
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Rule const& rule = rules[i];
    if (in(rule.src, packet.src) && in(rule.dst, packet.dst) && between(rule.sport, packet.sport) &&
        between(rule.dport, packet.dport) && (packet.protocol & rule.protocol_mask) == rule.protocol) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

class HostileRules {
 public:
  /// One name per kind.
  static std::vector<std::string> kinds() {
    return {"nested_ports", "nested_ports_widest_first", "wide_in_all_fields", "nested_prefixes", "equal", "cross"};
  }

  HostileRules(std::string const& kind, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      rules_.push_back(rule(kind, i, count));
    }
  }
  std::vector<Rule> const& rules() const { return rules_; }

  /// A packet with every field at a bound of one of the rules, or one step beside it.
  Tuple tuple() {
    Rule const& rule = rules_[below(static_cast<std::uint32_t>(rules_.size()))];
    Tuple result;
    result.src = beside(rule.src.address, rule.src.address | ~rule.src.mask());
    result.dst = beside(rule.dst.address, rule.dst.address | ~rule.dst.mask());
    result.sport = beside(rule.sport.first, rule.sport.last) & 0xFFFFU;
    result.dport = beside(rule.dport.first, rule.dport.last) & 0xFFFFU;
    result.protocol = below(4) == 0 ? below(256) : rule.protocol | (below(256) & ~rule.protocol_mask & 0xFFU);
    result.has_ports = below(8) != 0;
    return result;
  }

 private:
  Rule rule(std::string const& kind, std::uint32_t i, std::uint32_t count) {
    Rule rule;
    if (kind == "nested_ports" || kind == "nested_ports_widest_first") {
      // each contains the previous one, or the next; packets to other destination ports match no rule
      const std::uint32_t width = kind == "nested_ports" ? i : count - 1 - i;
      rule.sport = ports(30'000 - width, 30'000 + width);
      rule.dport = ports(1, 60'000);
    } else if (kind == "wide_in_all_fields") {
      rule.src = prefix(below(5));
      rule.dst = prefix(below(5));
      rule.sport = any_ports();
      rule.dport = any_ports();
      rule.protocol_mask = below(2) == 0 ? 0x0F : below(2) == 0 ? 0x80 : 0xFF;
      rule.protocol = static_cast<std::uint8_t>(below(256) & rule.protocol_mask);
    } else if (kind == "nested_prefixes") {
      rule.src = prefix(32 - i % 33, 0x0A0B0C0D);
      rule.dst = prefix(32 - i / 33 % 33, 0xC0A80101);
      rule.dport = ports(i % 65'536, 65'535);
    } else if (kind == "equal") {
      rule.src = prefix(8, 0x0A000000);
      rule.dport = ports(80, 90);
    } else {
      // every second rule has one source port, the others one destination port: any two of both kinds overlap
      (i % 2 == 0 ? rule.sport : rule.dport) = ports(i, i);
    }
    return rule;
  }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_()) % bound; }
  std::uint32_t beside(std::uint32_t low, std::uint32_t high) { return (below(2) == 0 ? low : high) + below(3) - 1; }
  packet::Ipv4Prefix prefix(std::uint32_t length) { return prefix(length, static_cast<std::uint32_t>(random_())); }
  static packet::Ipv4Prefix prefix(std::uint32_t length, std::uint32_t address) {
    packet::Ipv4Prefix result{address, static_cast<std::uint8_t>(length)};
    result.address &= result.mask();
    return result;
  }
  static PortRange ports(std::uint32_t first, std::uint32_t last) {
    return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
  }
  PortRange any_ports() {
    const auto [first, last] = std::minmax({below(65'536), below(65'536)});
    return ports(first, last);
  }

  std::mt19937 random_{5};
  std::vector<Rule> rules_;
};

}  // namespace catena::classify::testing
