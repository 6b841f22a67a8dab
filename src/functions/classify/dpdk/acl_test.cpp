// SPDX-License-Identifier: Apache-2.0
// rte_acl judges the tree and the bit vectors, which share nothing with it nor with each other.
#include "functions/classify/dpdk/acl.hpp"

#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include <filesystem>

#include "functions/classify/dpdk/acl_search.hpp"
#include "functions/classify/hostile_rules.hpp"
#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_generator.hpp"
#include "functions/classify/rule_parser.hpp"
#include "functions/classify/trace_file.hpp"
#include "functions/classify/tree_search.hpp"

namespace catena::classify {
namespace {

using testing::Tuple;

/// Expects that all three find the same for each tuple.
void expect_agreement(std::span<const Rule> rules, std::vector<Tuple> const& tuples) {
  const auto acl = Acl::create(rules);
  ASSERT_TRUE(acl.ok()) << acl.status();
  const auto tree = RuleTree::create(rules);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const testing::HostTables bits(build_bit_vector(rules));
  std::size_t found = 0;
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    const int judged = testing::find_by_acl(*acl, tuples[i]);
    ASSERT_EQ(testing::find_by_tree(*tree, tuples[i]), judged) << "tuple " << i;
    ASSERT_EQ(testing::find_by_bit_vector(bits, tuples[i]), judged) << "tuple " << i;
    found += judged >= 0 ? 1 : 0;
  }
  EXPECT_GT(found, tuples.size() / 10);
}

class ClassBenchTrace : public ::testing::TestWithParam<std::string> {};

TEST_P(ClassBenchTrace, rte_acl_and_the_tree_find_the_expected_rule) {
  const std::string base = shared_data() + "/firewall/" + GetParam();
  const std::vector<testing::TraceLine> lines = testing::read_trace(base + ".trace_expected.tsv");
  if (lines.empty()) {
    GTEST_SKIP() << "ClassBench's rules may not be redistributed and are not beside the checkout";
  }
  const auto file = load_rules(base + ".rules", Action::kDeny);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tree = RuleTree::create(file->rules);
  ASSERT_TRUE(tree.ok()) << tree.status();
  std::vector<Tuple> tuples;
  for (testing::TraceLine const& line : lines) {
    ASSERT_EQ(testing::find_by_tree(*tree, line.tuple), line.rule);
    tuples.push_back(line.tuple);
    // the same addresses without ports, as those of a later fragment
    tuples.push_back(line.tuple);
    tuples.back().has_ports = false;
  }
  expect_agreement(file->rules, tuples);
}
INSTANTIATE_TEST_SUITE_P(Files, ClassBenchTrace, ::testing::Values("classbench_fw1_186", "classbench_acl1_188"),
                         [](auto const& tested) { return tested.param; });

class Generated : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Generated, rte_acl_finds_the_same) {
  testing::RuleGenerator generator(GetParam());
  const auto file = parse_rules(generator.text(), "t");
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<Tuple> tuples;
  for (int i = 0; i < 50'000; ++i) {
    tuples.push_back(generator.tuple());
  }
  expect_agreement(file->rules, tuples);
}
INSTANTIATE_TEST_SUITE_P(Sizes, Generated, ::testing::Values(188, 1000, 10'000), ::testing::PrintToStringParamName());

/// As many rules as rte_acl has memory for.
class Hostile : public ::testing::TestWithParam<std::string> {};

TEST_P(Hostile, rte_acl_finds_the_same) {
  constexpr std::uint32_t kRules = 150;
  testing::HostileRules hostile(GetParam(), kRules);
  std::vector<Tuple> tuples;
  for (int i = 0; i < 20'000; ++i) {
    tuples.push_back(hostile.tuple());
  }
  expect_agreement(hostile.rules(), tuples);
}
INSTANTIATE_TEST_SUITE_P(Kinds, Hostile, ::testing::ValuesIn(testing::HostileRules::kinds()),
                         [](auto const& tested) { return tested.param; });

}  // namespace
}  // namespace catena::classify
