// SPDX-License-Identifier: Apache-2.0
#include "nf/yaml_limits.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::nf {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::string const& text) { return std::string(Config::parse(text, "x.yaml").status().message()); }

/// Lines that each have twice what the one before stands for.
std::string doubled(int lines, std::string const& first) {
  std::string text = concat("a0: &a0 ", first, "\n");
  for (int i = 1; i < lines; ++i) {
    text += concat("a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  }
  return text;
}

TEST(YamlLimits, what_aliases_stand_for_counts) {
  EXPECT_EQ(error_of(doubled(20, "[~, ~]")), "");
  // of more than 2^62 nodes, none of which has a text
  EXPECT_THAT(error_of(doubled(62, "[~, ~]")),
              AllOf(StartsWith("x.yaml:23:"), HasSubstr("more than 16777216 values and keys")));
  EXPECT_THAT(error_of("config:\n  a: &a [~]\n  b: [*a, *a\n"), HasSubstr("not valid YAML"));
}

TEST(YamlLimits, nodes_are_counted_to_the_last_one) {
  const std::string text = "a: [1, {b: 2}]\nc: &c [x, y]\nd: *c\n";  // 1 + 6 + 4 + 4
  {
    const YamlScope scope({.bytes = 100, .nodes = 15});
    EXPECT_EQ(error_of(text), "");
  }
  const YamlScope scope({.bytes = 100, .nodes = 14});
  EXPECT_THAT(error_of(text), StartsWith("x.yaml:3:4: more than 14 values and keys"));
}

TEST(YamlLimits, an_alias_to_what_it_is_a_part_of_is_refused) {
  EXPECT_THAT(error_of("a: &a [1, [*a]]\n"), StartsWith("x.yaml:1:12: an alias refers to a value containing it"));
  EXPECT_THAT(error_of("&r {a: *r}\n"), StartsWith("x.yaml:1:8: an alias refers to a value containing it"));
  EXPECT_EQ(error_of("a: &a [1]\nb: [*a]\nc: &a [2]\nd: *a\n"), "") << "a name may be used again";
}

TEST(YamlLimits, levels_count_however_they_are_written) {
  std::string indented;
  std::string aliases = "a0: &a0 [~]\n";
  for (int i = 0; i < 65; ++i) {
    indented += concat(std::string(static_cast<std::size_t>(i), ' '), "k:\n");
  }
  EXPECT_EQ(error_of(indented), "");
  EXPECT_THAT(error_of(concat(indented, std::string(65, ' '), "k: 1\n")),
              AllOf(StartsWith("x.yaml:66:"), HasSubstr("nested more than 64 levels deep")));
  for (int i = 1; i < 64; ++i) {
    aliases += concat("a", i, ": &a", i, " [*a", i - 1, "]\n");
  }
  EXPECT_EQ(error_of(aliases), "");
  EXPECT_THAT(error_of(concat(aliases, "b: [*a63]\n")),
              AllOf(StartsWith("x.yaml:65:"), HasSubstr("nested more than 64 levels deep")));
}

TEST(YamlLimits, a_file_of_many_nodes_is_refused_before_they_are_made) {
  std::string list = "a: [";
  for (int i = 0; i < 100'000; ++i) {
    list += "[],";
  }
  EXPECT_EQ(error_of(list + "]\n"), "");
  {
    const YamlScope scope({.bytes = list.size() + 2, .nodes = 100'003});
    EXPECT_EQ(error_of(list + "]\n"), "");
  }
  {
    const YamlScope scope({.bytes = list.size() + 2, .nodes = 10'000});
    EXPECT_THAT(error_of(list + "]\n"), StartsWith("x.yaml:1:"));
    EXPECT_THAT(error_of(list + "]\n"), HasSubstr("more than 10000"));
  }
  const YamlScope scope({.bytes = 1000, .nodes = 10'000});
  EXPECT_THAT(error_of(list), HasSubstr("a YAML file here has at most 1000"));
}

TEST(YamlLimits, so_many_keys_that_are_not_known_are_said) {
  std::string text = "known: 1\n";
  for (int i = 0; i < 30'000; ++i) {
    text += concat("k", i, ": 1\n");
  }
  Config config = Config::parse(text, "x.yaml").value();
  ASSERT_TRUE(config.has("known"));
  const std::string errors(config.finish().message());
  EXPECT_THAT(errors, StartsWith("x.yaml:2:1: unknown key 'k0'"));
  EXPECT_THAT(errors, HasSubstr("x.yaml:65:1: unknown key 'k63'"));
  EXPECT_THAT(errors, ::testing::EndsWith("\nx.yaml:66:1: and more keys from here on"));
}

TEST(YamlLimits, the_outer_ones_hold_again_after_the_inner_ones) {
  const YamlScope outer({.bytes = 100, .nodes = 3});
  {
    const YamlScope inner({.bytes = 100, .nodes = 2});
    EXPECT_NE(error_of("a: 1\n"), "");
  }
  EXPECT_EQ(error_of("a: 1\n"), "");
  EXPECT_NE(error_of("a: [1]\n"), "");
}

}  // namespace
}  // namespace catena::nf
