// SPDX-License-Identifier: Apache-2.0
// The firewall against those who know better: traces with the rule that must match (a linear search and dpdk-test-acl
// agreed on them), the example of dpdk-test-acl, and a plain linear search over many generated rules. Each on three
// ways: packets through the NF on the CPU, packets through the kernel on every device, and bare tuples, which may have
// ports that no packet of their protocol has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "firewall_testing.hpp"
#include "functions/classify/dpdk/acl_search.hpp"
#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_generator.hpp"
#include "functions/classify/trace_file.hpp"

namespace catena::firewall {
namespace {

using nf::testing::Frame;
using nf::testing::make_frame;
using testing::rules_in;

/// A packet that reads as the tuple; one that is to have no ports but of TCP or UDP is a later fragment.
Frame frame_of(classify::testing::Tuple const& tuple) {
  Frame frame =
      make_frame(static_cast<std::uint8_t>(tuple.protocol), tuple.src, tuple.dst,
                 static_cast<std::uint16_t>(tuple.sport), static_cast<std::uint16_t>(tuple.dport), "twelve bytes");
  const bool could_have = tuple.protocol == packet::kProtocolTcp || tuple.protocol == packet::kProtocolUdp;
  if (could_have && !tuple.has_ports) {
    frame = nf::testing::with_fragment(std::move(frame), 7);
  }
  return frame;
}

class ExpectedRules : public testing::FirewallTest {
 protected:
  using Line = classify::testing::TraceLine;

  static std::string read(std::string const& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  /// Expects of each line the same rule from bare tuples and from packets everywhere.
  void expect_rules(std::string const& rules_text, std::vector<Line> const& lines) {
    const auto file = classify::parse_rules(rules_text, "fw.rules");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto acl = classify::Acl::create(file->rules);
    ASSERT_TRUE(acl.ok()) << acl.status();
    const classify::testing::HostTables tables(classify::build_bit_vector(file->rules));
    std::vector<Frame> frames;
    std::vector<int> expected;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(classify::testing::find_by_acl(*acl, lines[i].tuple), lines[i].rule) << "tuple " << i;
      ASSERT_EQ(classify::testing::find_by_bit_vector(tables, lines[i].tuple), lines[i].rule) << "tuple " << i;
      frames.push_back(frame_of(lines[i].tuple));
      expected.push_back(lines[i].rule);
    }
    write_rules(rules_text);
    const std::vector<int> found = rules_in(run(frames));
    ASSERT_EQ(found.size(), expected.size());
    const auto [wrong, right] = std::mismatch(found.begin(), found.end(), expected.begin());
    EXPECT_EQ(wrong, found.end()) << "packet " << wrong - found.begin() << ": rule " << *wrong << ", expected "
                                  << *right;
  }
};

class Oracle : public ExpectedRules {
 protected:
  const std::string data_ = shared_data() + "/firewall/";
};

class ClassBenchTrace : public Oracle, public ::testing::WithParamInterface<std::pair<const char*, std::size_t>> {};

TEST_P(ClassBenchTrace, every_line_matches_the_expected_rule) {
  auto const& [name, count] = GetParam();
  const std::vector<Line> lines = classify::testing::read_trace(data_ + name + ".trace_expected.tsv");
  if (lines.empty()) {
    GTEST_SKIP() << "ClassBench's rules may not be redistributed and are not beside the checkout";
  }
  ASSERT_EQ(lines.size(), count);
  expect_rules(read(data_ + name + ".rules"), lines);
}

INSTANTIATE_TEST_SUITE_P(Files, ClassBenchTrace,
                         ::testing::Values(std::pair("classbench_fw1_186", 2990U),
                                           std::pair("classbench_acl1_188", 3020U)),
                         [](auto const& tested) { return std::string(tested.param.first); });

TEST_F(Oracle, dpdks_own_example_matches_as_dpdk_says) {
  std::ifstream trace(data_ + "dpdk_acl1v4_5_trace");
  std::vector<Line> lines;
  std::string row;
  while (std::getline(trace, row)) {
    Line line{};
    if (std::sscanf(row.c_str(), "%x %x %u %u %u %d", &line.tuple.src, &line.tuple.dst, &line.tuple.sport,
                    &line.tuple.dport, &line.tuple.protocol, &line.rule) == 6) {
      lines.push_back(line);
    }
  }
  ASSERT_EQ(lines.size(), 5U);
  expect_rules(read(data_ + "dpdk_acl1v4_5_rule"), lines);
}

class LinearSearch : public ExpectedRules, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(LinearSearch, finds_the_same_rule_for_packets_near_the_borders_of_rules) {
  classify::testing::RuleGenerator generator(GetParam());
  std::vector<Line> lines;
  std::set<int> found;
  while (lines.size() < 10000) {
    const classify::testing::Tuple tuple = generator.tuple();
    lines.push_back({tuple, classify::testing::first_match(generator.rules(), tuple)});
    found.insert(lines.back().rule);
  }
  // the packets are of use only if they reach many rules, and where rules are few also none
  EXPECT_GE(found.size(), GetParam() / 4);
  EXPECT_TRUE(found.contains(-1) || GetParam() > 100);
  expect_rules(generator.text(), lines);
}

// around a word, around a word of the summary, and the most that there may be
INSTANTIATE_TEST_SUITE_P(Sizes, LinearSearch, ::testing::Values(1, 31, 32, 33, 1023, 1024, 1025, 10000),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace catena::firewall
