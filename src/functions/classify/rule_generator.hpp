// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "functions/classify/linear_search.hpp"

namespace catena::classify::testing {

/// Random rules with much overlap, written in both forms, and packets near their bounds; equal each time. Narrow rules
/// tend to come first, as in files written by people. Otherwise a few wide rules would hide all others.
class RuleGenerator {
 public:
  explicit RuleGenerator(std::uint32_t count) : random_(count) {
    std::vector<Draft> drafts;
    while (drafts.size() < count) {
      drafts.push_back(draft());
    }
    std::stable_sort(drafts.begin(), drafts.end(), [](Draft const& a, Draft const& b) { return a.place < b.place; });
    for (Draft const& next : drafts) {
      text_ += number(2) == 0 ? readable(next) : classbench(next);
      rules_.push_back(next.rule);
    }
  }
  std::vector<PlainRule> const& rules() const { return rules_; }
  std::string const& text() const { return text_; }

  /// A packet with every field at a bound of one of the rules, or one step beside it.
  Tuple tuple() {
    PlainRule const& rule = rules_[number(static_cast<std::uint32_t>(rules_.size()))];
    Tuple result;
    result.src = near(rule.src_low, rule.src_high);
    result.dst = near(rule.dst_low, rule.dst_high);
    result.sport = near(rule.sport_low, rule.sport_high) & 0xFFFFU;
    result.dport = near(rule.dport_low, rule.dport_high) & 0xFFFFU;
    result.protocol = number(16) == 0 ? number(256) : rule.protocol.value_or(number(2) == 0 ? 6 : 17);
    result.has_ports = (result.protocol == 6 || result.protocol == 17) && number(16) != 0;
    return result;
  }

 private:
  struct Draft {
    PlainRule rule;
    packet::Ipv4Prefix src;
    packet::Ipv4Prefix dst;
    std::uint32_t place;
  };

  Draft draft() {
    Draft result{};
    PlainRule& rule = result.rule;
    result.src = prefix(rule.src_low, rule.src_high);
    result.dst = prefix(rule.dst_low, rule.dst_high);
    if (number(8) != 0) {
      rule.protocol = std::array<std::uint32_t, 5>{6, 6, 17, 17, 1}[number(5)];
    }
    if (rule.protocol != 1U) {
      ports(rule.sport_low, rule.sport_high, 3);
      ports(rule.dport_low, rule.dport_high, 1);
    }
    result.place = 64U - result.src.length - result.dst.length + number(8);
    return result;
  }

  std::uint32_t number(std::uint32_t below) { return static_cast<std::uint32_t>(random_()) % below; }

  packet::Ipv4Prefix prefix(std::uint32_t& low, std::uint32_t& high) {
    static constexpr std::array<std::uint8_t, 16> kLengths{0, 7, 8, 12, 14, 16, 20, 23, 24, 24, 25, 28, 31, 32, 32, 32};
    packet::Ipv4Prefix result{0x0A000000 | (static_cast<std::uint32_t>(random_()) & 0x030F0FFF), kLengths[number(16)]};
    result.address &= result.mask();
    low = result.address;
    high = result.address | ~result.mask();
    return result;
  }
  /// Restricts the ports, with probability 1 / (`any` + 1).
  void ports(std::uint32_t& low, std::uint32_t& high, std::uint32_t any) {
    if (number(any + 1) != 0) {
      return;
    }
    low = number(4) == 0 ? number(65536) : number(200);
    high = number(2) == 0 ? low : low + number(65536 - low);
  }
  std::uint32_t near(std::uint32_t low, std::uint32_t high) {
    switch (number(8)) {
      case 0:
        return low - 1;
      case 1:
        return high + 1;
      case 2:
        return low;
      case 3:
        return high;
      default:
        return low + static_cast<std::uint32_t>(random_() % (std::uint64_t{high} - low + 1));
    }
  }

  static std::string readable(Draft const& draft) {
    PlainRule const& rule = draft.rule;
    const auto address = [](packet::Ipv4Prefix const& prefix) {
      return prefix.length == 0 ? "any" : packet::to_string(prefix);
    };
    const auto range = [](std::uint32_t low, std::uint32_t high) {
      return low == high ? concat(low) : low == 0 && high == 65535 ? "any" : concat(low, "-", high);
    };
    return concat("deny ", rule.protocol.has_value() ? concat(*rule.protocol) : "any", " ", address(draft.src), " ",
                  address(draft.dst), " ", range(rule.sport_low, rule.sport_high), " ",
                  range(rule.dport_low, rule.dport_high), "\n");
  }
  static std::string classbench(Draft const& draft) {
    PlainRule const& rule = draft.rule;
    return fmt::format("@{}\t{}\t{} : {}\t{} : {}\t0x{:02x}/0x{:02X}\t0x0000/0x0000\t\n", packet::to_string(draft.src),
                       packet::to_string(draft.dst), rule.sport_low, rule.sport_high, rule.dport_low, rule.dport_high,
                       rule.protocol.value_or(0), rule.protocol.has_value() ? 0xFF : 0);
  }

  std::mt19937 random_;
  std::vector<PlainRule> rules_;
  std::string text_;
};

}  // namespace catena::classify::testing
