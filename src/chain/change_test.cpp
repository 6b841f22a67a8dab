// SPDX-License-Identifier: Apache-2.0
#include "chain/change.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::chain {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

constexpr const char* kChain = R"(apiVersion: catena/v1
kind: Chain
metadata: {name: c}
spec:
  rx: {generator: {count: 5}}
  tx: null
  nfs:
    - {name: fw, type: firewall, config: {rules: fw.rules, default: allow}}
    - {name: rt, type: router, on: cpu, config: {routes: routes.txt}}
)";

ChainConfig parse_changed(std::string const& text) {
  Result<ChainConfig> config = parse_chain(text, "/c.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

std::string with(std::string_view from, std::string_view to) {
  std::string text = kChain;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

bool is_same(std::string const& next) { return is_same_spec(parse_changed(kChain), parse_changed(next)); }

std::vector<std::optional<std::size_t>> same(std::string const& next) {
  return same_nfs(parse_changed(kChain), parse_changed(next));
}

TEST(Change, the_same_file_in_other_words_is_the_same) {
  for (std::string const& next :
       {std::string(kChain), with("{rules: fw.rules, default: allow}", "{default: 'allow', rules: \"fw.rules\"}"),
        with("kind: Chain\n", "# a comment\nkind:   Chain\n\n")}) {
    EXPECT_TRUE(is_same(next)) << next;
    EXPECT_THAT(same(next), ElementsAre(Optional(0U), Optional(1U))) << next;
  }
}

TEST(Change, an_nf_with_another_value_of_any_key_is_another) {
  for (auto const& [from, to] : {std::pair{"default: allow", "default: deny"},
                                 {"type: firewall,", "type: firewall, link_local: drop,"},
                                 {"type: firewall,", "type: firewall, on: auto,"},
                                 {"name: fw", "name: f2"}}) {
    EXPECT_FALSE(is_same(with(from, to))) << to;
    EXPECT_THAT(same(with(from, to)), ElementsAre(Eq(std::nullopt), Optional(1U))) << to;
  }
}

TEST(Change, a_default_of_all_nfs_is_a_key_of_each) {
  for (const char* key : {"on_unsupported: drop", "link_local: drop"}) {
    const std::string next = with("  tx: null\n", concat("  tx: null\n  ", key, "\n"));
    EXPECT_FALSE(is_same(next)) << key;
    EXPECT_THAT(same(next), Each(Eq(std::nullopt))) << key;
  }
}

TEST(Change, another_key_of_the_chain_leaves_its_nfs_the_same) {
  for (auto const& [from, to] : {std::pair{"count: 5", "count: 6"},
                                 {"  tx: null\n", "  tx: null\n  tuning: {unit_packets: 64}\n"},
                                 {"{name: c}", "{name: d}"}}) {
    EXPECT_FALSE(is_same(with(from, to))) << to;
    EXPECT_THAT(same(with(from, to)), ElementsAre(Optional(0U), Optional(1U))) << to;
  }
}

TEST(Change, nfs_are_found_wherever_they_are) {
  const std::string firewall = "    - {name: fw, type: firewall, config: {rules: fw.rules, default: allow}}\n";
  EXPECT_THAT(same(with(firewall, "")), ElementsAre(Optional(1U)));
  EXPECT_THAT(same(with(firewall, "") + firewall), ElementsAre(Optional(1U), Optional(0U)));
  EXPECT_FALSE(is_same(with(firewall, "") + firewall));
}

TEST(Change, files_in_another_folder_are_others) {
  const ChainConfig elsewhere = *parse_chain(kChain, "/there/c.yaml");
  EXPECT_FALSE(is_same_spec(parse_changed(kChain), elsewhere));
  EXPECT_THAT(same_nfs(parse_changed(kChain), elsewhere), Each(Eq(std::nullopt)));
}

}  // namespace
}  // namespace catena::chain
