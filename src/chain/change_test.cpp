// SPDX-License-Identifier: Apache-2.0
#include "chain/change.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

Result<std::vector<std::size_t>> changed(std::string const& next) {
  return changed_nfs(parse_changed(kChain), parse_changed(next));
}

TEST(Change, the_same_file_in_other_words_has_no_changed_nf) {
  EXPECT_THAT(*changed(kChain), IsEmpty());
  EXPECT_THAT(*changed(with("{rules: fw.rules, default: allow}", "{default: 'allow', rules: \"fw.rules\"}")),
              IsEmpty());
  EXPECT_THAT(*changed(with("kind: Chain\n", "# a comment\nkind:   Chain\n\n")), IsEmpty());
}

TEST(Change, what_an_nf_decides_by_may_change) {
  EXPECT_THAT(*changed(with("default: allow", "default: deny")), ElementsAre(0));
  EXPECT_THAT(*changed(with("on: cpu,", "on: cpu, on_unsupported: drop,")), ElementsAre(1));
  EXPECT_THAT(*changed(with("type: firewall,", "type: firewall, link_local: drop,")), ElementsAre(0));
}

TEST(Change, what_else_has_changed_is_said) {
  struct Case {
    const char* from;
    const char* to;
    const char* said;
  };
  for (Case const& test : {
           Case{"count: 5", "count: 6", "/c.yaml: 'rx' of 'spec' has changed"},
           Case{"  tx: null\n", "  tx: null\n  tuning: {unit_packets: 64}\n", "'tuning' of 'spec' has changed"},
           Case{"{name: c}", "{name: d}", "/c.yaml: 'metadata' has changed"},
           Case{"on: cpu", "on: auto", "/c.yaml:9:24: 'on' of NF 'rt' has changed"},
           Case{"name: rt", "name: r2", "the NFs are fw, r2 instead of fw, rt"},
           Case{"type: router, on: cpu, config: {routes: routes.txt}", "type: nat, config: {inside: [10.0.0.0/8]}",
                "/c.yaml:9:24: 'on', 'type' of NF 'rt' has changed"},
       }) {
    const auto result = changed(with(test.from, test.to));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition) << test.to;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(test.said));
  }
  const std::string without = with("    - {name: rt, type: router, on: cpu, config: {routes: routes.txt}}\n", "");
  EXPECT_THAT(std::string(changed(without).status().message()), HasSubstr("the NFs are fw instead of fw, rt"));
}

}  // namespace
}  // namespace catena::chain
