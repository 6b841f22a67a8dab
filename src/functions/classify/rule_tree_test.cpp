// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/rule_tree.hpp"

#include <gtest/gtest.h>

#include <set>

#include "functions/classify/hostile_rules.hpp"
#include "functions/classify/rule_generator.hpp"
#include "functions/classify/rule_parser.hpp"
#include "functions/classify/tree_search.hpp"

namespace catena::classify {
namespace {

using testing::find_by_tree;
using testing::Tuple;

constexpr std::size_t kMaxBytesEach = 1152;

TEST(RuleTree, finds_the_first_of_rules_that_overlap) {
  const auto file = parse_rules(
      "deny tcp 10.1.0.0/16 any any 80\n"
      "deny any 10.0.0.0/8  any any 1-100\n"
      "deny any any         any any any\n"
      "deny tcp 10.1.0.0/16 any any 80\n",
      "t");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tree = RuleTree::create(file->rules);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(find_by_tree(*tree, {0x0A010000, 0, 5, 80, 6, true}), 0);
  EXPECT_EQ(find_by_tree(*tree, {0x0A010000, 0, 5, 80, 17, true}), 1);
  EXPECT_EQ(find_by_tree(*tree, {0x0A010000, 0, 5, 101, 6, true}), 2);
  EXPECT_EQ(find_by_tree(*tree, {0x0B010000, 0, 5, 80, 6, true}), 2);
  EXPECT_EQ(find_by_tree(*tree, {0x0A010000, 0, 0, 0, 6, false}), 2);
}

TEST(RuleTree, holds_no_rule_and_refuses_more_than_there_may_be) {
  const auto none = RuleTree::create({});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(find_by_tree(*none, {1, 2, 3, 4, 6, true}), -1);
  EXPECT_EQ(find_by_tree(*none, {1, 2, 3, 4, 1, false}), -1);
  const std::vector<Rule> rules(kMaxRules + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(RuleTree::create(rules).status()));
}

TEST(RuleTree, a_protocol_s_mask_may_leave_out_values_in_between) {
  std::vector<Rule> rules;
  Rule even;
  even.protocol_mask = 1;
  rules.push_back(even);
  for (std::uint32_t protocol = 1; protocol < 128; protocol += 4) {
    Rule one;
    one.protocol = static_cast<std::uint8_t>(protocol);
    one.protocol_mask = 0xFF;
    rules.push_back(one);
  }
  rules.emplace_back();
  const auto tree = RuleTree::create(rules);
  ASSERT_TRUE(tree.ok()) << tree.status();
  for (std::uint32_t protocol = 0; protocol < 256; ++protocol) {
    const Tuple tuple{1, 2, 3, 4, protocol, true};
    EXPECT_EQ(find_by_tree(*tree, tuple), testing::first_match(rules, tuple)) << protocol;
  }
}

class Generated : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Generated, a_linear_search_finds_the_same) {
  testing::RuleGenerator generator(GetParam());
  const auto file = parse_rules(generator.text(), "t");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tree = RuleTree::create(file->rules);
  ASSERT_TRUE(tree.ok()) << tree.status();
  std::set<int> found;
  for (int i = 0; i < 20'000; ++i) {
    const Tuple tuple = generator.tuple();
    const int expected = testing::first_match(generator.rules(), tuple);
    ASSERT_EQ(find_by_tree(*tree, tuple), expected) << "tuple " << i;
    found.insert(expected);
  }
  EXPECT_GE(found.size(), GetParam() / 4);
  EXPECT_LE(tree->bytes(), GetParam() * kMaxBytesEach);
}
// around a leaf, and the most that there may be
INSTANTIATE_TEST_SUITE_P(Sizes, Generated, ::testing::Values(1, 2, 12, 13, 14, 188, 1000, 10'000),
                         ::testing::PrintToStringParamName());

class Hostile : public ::testing::TestWithParam<std::string> {};

TEST_P(Hostile, a_linear_search_finds_the_same_and_memory_is_bounded) {
  testing::HostileRules hostile(GetParam(), kMaxRules);
  const auto tree = RuleTree::create(hostile.rules());
  ASSERT_TRUE(tree.ok()) << tree.status();
  std::set<int> found;
  for (int i = 0; i < 10'000; ++i) {
    const Tuple tuple = hostile.tuple();
    const int expected = testing::first_match(hostile.rules(), tuple);
    ASSERT_EQ(find_by_tree(*tree, tuple), expected) << "tuple " << i;
    found.insert(expected);
  }
  EXPECT_GE(found.size(), 2U);  // of equal rules only the first is ever found
  EXPECT_LE(tree->bytes(), kMaxRules * kMaxBytesEach);
}
INSTANTIATE_TEST_SUITE_P(Kinds, Hostile, ::testing::ValuesIn(testing::HostileRules::kinds()),
                         [](auto const& tested) { return tested.param; });

}  // namespace
}  // namespace catena::classify
