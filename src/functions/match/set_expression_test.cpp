// SPDX-License-Identifier: Apache-2.0
#include "functions/match/set_expression.hpp"

#include "functions/match/rule.hpp"

#include "functions/match/test_random.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::match {
namespace {

using Interval = IntervalSet::Interval;

std::vector<Interval> addresses(std::string_view text, Variables const& variables = Variables()) {
  SetResult result = parse_set(SetKind::kAddress, text, variables);
  EXPECT_TRUE(std::holds_alternative<IntervalSet>(result)) << text << ": " << std::get<SetError>(result).message;
  return std::get<IntervalSet>(result).intervals();
}
std::vector<Interval> ports(std::string_view text, Variables const& variables = Variables()) {
  SetResult result = parse_set(SetKind::kPort, text, variables);
  EXPECT_TRUE(std::holds_alternative<IntervalSet>(result)) << text << ": " << std::get<SetError>(result).message;
  return std::get<IntervalSet>(result).intervals();
}
SetError error_of(SetKind kind, std::string_view text) {
  SetResult result = parse_set(kind, text, Variables());
  EXPECT_TRUE(std::holds_alternative<SetError>(result)) << text;
  return std::holds_alternative<SetError>(result) ? std::get<SetError>(result) : SetError{};
}
constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr Interval kAnyAddress{0, kMaxAddress};

TEST(SetExpression, single_values_blocks_and_ranges) {
  EXPECT_THAT(addresses("any"), ::testing::ElementsAre(kAnyAddress));
  EXPECT_THAT(addresses("10.1.2.3"), ::testing::ElementsAre(Interval{ip(10, 1, 2, 3), ip(10, 1, 2, 3)}));
  EXPECT_THAT(addresses("10.1.2.3/8"), ::testing::ElementsAre(Interval{ip(10, 0, 0, 0), ip(10, 255, 255, 255)}));
  EXPECT_THAT(addresses("0.0.0.0/0"), ::testing::ElementsAre(kAnyAddress));
  EXPECT_THAT(addresses("10.0.0.0/255.255.0.0"),
              ::testing::ElementsAre(Interval{ip(10, 0, 0, 0), ip(10, 0, 255, 255)}));
  EXPECT_THAT(addresses("10.0.0.5-10.0.0.9"), ::testing::ElementsAre(Interval{ip(10, 0, 0, 5), ip(10, 0, 0, 9)}));
  EXPECT_THAT(ports("80"), ::testing::ElementsAre(Interval{80, 80}));
  EXPECT_THAT(ports("1024:"), ::testing::ElementsAre(Interval{1024, 65535}));
  EXPECT_THAT(ports(":1023"), ::testing::ElementsAre(Interval{0, 1023}));
  EXPECT_THAT(ports("20:30"), ::testing::ElementsAre(Interval{20, 30}));
}

TEST(SetExpression, lists_negation_and_nesting) {
  EXPECT_THAT(ports("[80, 443,81]"), ::testing::ElementsAre(Interval{80, 81}, Interval{443, 443}));
  EXPECT_THAT(ports("!80"), ::testing::ElementsAre(Interval{0, 79}, Interval{81, 65535}));
  EXPECT_THAT(ports("[!80,!443]"), ::testing::ElementsAre(Interval{0, 79}, Interval{81, 442}, Interval{444, 65535}));
  EXPECT_THAT(ports("![80,443]"), ::testing::ElementsAre(Interval{0, 79}, Interval{81, 442}, Interval{444, 65535}));
  EXPECT_THAT(ports("[1:10,[!5]]"), ::testing::ElementsAre(Interval{1, 4}, Interval{6, 10}));
  EXPECT_THAT(ports("[1:10,![3:5,!4]]"), ::testing::ElementsAre(Interval{1, 2}, Interval{4, 4}, Interval{6, 10}));
  EXPECT_THAT(ports("[[[7]]]"), ::testing::ElementsAre(Interval{7, 7}));
}

TEST(SetExpression, variables_stand_for_their_elements) {
  const std::vector<Variables::Definition> definitions = {{"HOME_NET", "[10.0.0.0/8,!10.0.0.1]", ""},
                                                          {"EXTERNAL_NET", "!$HOME_NET", ""},
                                                          {"WEB", "[$HTTP_PORTS,8080]", ""}};
  const auto created = Variables::create(definitions);
  ASSERT_TRUE(std::holds_alternative<Variables>(created));
  Variables const& variables = std::get<Variables>(created);
  EXPECT_THAT(addresses("$HOME_NET", variables),
              ::testing::ElementsAre(Interval{ip(10, 0, 0, 0), ip(10, 0, 0, 0)},
                                     Interval{ip(10, 0, 0, 2), ip(10, 255, 255, 255)}));
  EXPECT_THAT(addresses("$EXTERNAL_NET", variables),
              ::testing::ElementsAre(Interval{0, ip(9, 255, 255, 255)}, Interval{ip(10, 0, 0, 1), ip(10, 0, 0, 1)},
                                     Interval{ip(11, 0, 0, 0), kMaxAddress}));
  EXPECT_EQ(addresses("$HTTP_SERVERS", variables), addresses("$HOME_NET", variables));
  EXPECT_THAT(ports("$WEB", variables), ::testing::ElementsAre(Interval{80, 80}, Interval{8080, 8080}));
}

// No IPv4 packet has an IPv6 address: what is left of a list is that of IPv4, as in Suricata 7.0.10, which decided the
// cases (`!` of IPv6 addresses alone are all others of IPv6).
TEST(SetExpression, ipv6_addresses_in_a_list_are_left_out) {
  const std::vector<Variables::Definition> definitions = {{"BOTH", "[10.0.0.0/8,fe80::/10]", ""}};
  const auto created = Variables::create(definitions);
  ASSERT_TRUE(std::holds_alternative<Variables>(created)) << std::get<Variables::Failure>(created).message;
  Variables const& variables = std::get<Variables>(created);
  const auto like = [&](std::string_view text, std::string_view ipv4) {
    EXPECT_EQ(addresses(text, variables), addresses(ipv4)) << text;
  };
  like("[10.0.0.0/8,fe80::/10]", "10.0.0.0/8");
  like("[2001:db8::1-2001:db8::9,10.0.0.0/8]", "10.0.0.0/8");
  like("[10.0.0.0/8,fe80::/10,!10.1.0.0/16]", "[10.0.0.0/8,!10.1.0.0/16]");
  like("[fe80::/10,!10.1.0.0/16]", "!10.1.0.0/16");
  like("[10.0.0.0/8,!fe80::/10]", "10.0.0.0/8");
  like("[any,!::1]", "any");
  like("[!10.1.0.0/16,!fe80::/10]", "!10.1.0.0/16");
  like("![10.0.0.0/8,fe80::/10]", "!10.0.0.0/8");
  like("[10.0.0.0/8,![fe80::/10,10.1.0.0/16]]", "[10.0.0.0/8,!10.1.0.0/16]");
  like("[fe80::/10,![fe80::1,10.0.0.0/8]]", "!10.0.0.0/8");
  like("$BOTH", "10.0.0.0/8");
  like("!$BOTH", "!10.0.0.0/8");
  like("[$BOTH,192.0.2.0/24]", "[10.0.0.0/8,192.0.2.0/24]");
  like("[![$BOTH,fe80::1]]", "!10.0.0.0/8");
  for (std::string_view text : {"fe80::1", "!fe80::/10", "[fe80::/10]", "[!fe80::/10]", "![::/0]"}) {
    EXPECT_EQ(error_of(SetKind::kAddress, text).unsupported, "IPv6 address") << text;
  }
  for (std::string_view text : {"[10.0.0.0/8,fe80::/129]", "[10.0.0.0/8,fe80::1-10.0.0.1]", "[10.0.0.0/8,fe80::x]"}) {
    EXPECT_EQ(error_of(SetKind::kAddress, text).offset, 12U) << text;
  }
}

TEST(SetExpression, errors_name_the_place_and_the_remedy) {
  EXPECT_EQ(error_of(SetKind::kAddress, "[10.0.0.1,10.0.0.256]").offset, 10U);
  EXPECT_THAT(error_of(SetKind::kAddress, "10.0.0.0/33").message, ::testing::HasSubstr("10.0.0.0/8"));
  EXPECT_THAT(error_of(SetKind::kAddress, "10.0.0.0/255.0.255.0").message, ::testing::HasSubstr("no IPv4 address"));
  EXPECT_THAT(error_of(SetKind::kAddress, "10.0.0.9-10.0.0.1").message, ::testing::HasSubstr("no IPv4 address"));
  EXPECT_EQ(error_of(SetKind::kAddress, "2001:db8::/32").unsupported, "IPv6 address");
  EXPECT_THAT(error_of(SetKind::kAddress, "!any").message, ::testing::HasSubstr("no address at all"));
  EXPECT_THAT(error_of(SetKind::kAddress, "[10.0.0.0/8,!10.0.0.0/7]").message, ::testing::HasSubstr("at all"));
  EXPECT_THAT(error_of(SetKind::kAddress, "$HOME_NTE").message, ::testing::HasSubstr("$HOME_NET"));
  EXPECT_THAT(error_of(SetKind::kAddress, "$HTTP_PORTS").message, ::testing::HasSubstr("does not hold addresses"));
  EXPECT_THAT(error_of(SetKind::kPort, "65536").message, ::testing::HasSubstr("65535"));
  EXPECT_THAT(error_of(SetKind::kPort, "20:10").message, ::testing::HasSubstr("no port"));
  for (std::string_view broken :
       {"", "[", "[1", "[1,", "[1,]", "[]", "1]", "!", "!!1", "$", ":", "1:2:3", "1-2", "[1 2]"}) {
    EXPECT_FALSE(error_of(SetKind::kPort, broken).message.empty()) << broken;
  }
}

TEST(SetExpression, depth_and_size_are_bounded) {
  EXPECT_THAT(error_of(SetKind::kPort, std::string(100000, '[')).message, ::testing::HasSubstr("nest deeper"));
  std::string list = "[0.0.0.0";
  for (std::uint32_t i = 1; i <= kMaxIntervals; ++i) {
    list += fmt::format(",{}.{}.{}.0", i >> 16, (i >> 8) & 255U, i & 255U);
  }
  EXPECT_THAT(error_of(SetKind::kAddress, list + "]").message, ::testing::HasSubstr("more than 65536"));
}

TEST(SetExpression, variables_that_mean_nothing_are_refused_with_their_position) {
  const std::vector<Variables::Definition> circle = {{"A", "[1.2.3.4,$B]", "chain.yaml:3:8"},
                                                     {"B", "!$A", "chain.yaml:4:8"}};
  const auto looped = Variables::create(circle);
  ASSERT_TRUE(std::holds_alternative<Variables::Failure>(looped));
  EXPECT_EQ(std::get<Variables::Failure>(looped).position, "chain.yaml:3:8");
  EXPECT_THAT(std::get<Variables::Failure>(looped).message, ::testing::HasSubstr("refers to itself"));
  const std::vector<Variables::Definition> nonsense = {{"A", "everything", "chain.yaml:3:8"}};
  const auto wrong = Variables::create(nonsense);
  ASSERT_TRUE(std::holds_alternative<Variables::Failure>(wrong));
  EXPECT_THAT(std::get<Variables::Failure>(wrong).message, ::testing::HasSubstr("everything"));
}

TEST(IntervalSet, set_algebra_agrees_with_membership) {
  testing::Random random(3);
  constexpr std::uint32_t kMaximum = 40;
  for (int round = 0; round < 500; ++round) {
    std::vector<Interval> parts[2];
    bool member[2][kMaximum + 1] = {};
    for (int side = 0; side < 2; ++side) {
      for (std::uint32_t n = random.below(5); n > 0; --n) {
        const std::uint32_t first = random.below(kMaximum + 1);
        const std::uint32_t last = std::min(kMaximum, first + random.below(8));
        parts[side].push_back({first, last});
        std::fill(member[side] + first, member[side] + last + 1, true);
      }
    }
    const IntervalSet a = IntervalSet::of(parts[0]);
    const IntervalSet b = IntervalSet::of(parts[1]);
    const IntervalSet difference = a.without(b, kMaximum);
    const IntervalSet rest = a.complement(kMaximum);
    for (std::uint32_t value = 0; value <= kMaximum; ++value) {
      EXPECT_EQ(a.contains(value), member[0][value]);
      EXPECT_EQ(rest.contains(value), !member[0][value]);
      EXPECT_EQ(difference.contains(value), member[0][value] && !member[1][value]);
    }
  }
}

}  // namespace
}  // namespace catena::match
