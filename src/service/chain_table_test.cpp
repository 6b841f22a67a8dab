// SPDX-License-Identifier: Apache-2.0
#include "service/chain_table.hpp"

#include <catena/core/testing/scratch_folder.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace catena::service {
namespace {

constexpr uid_t kUserOfChains = 3001;

class ChainTableTest : public ::testing::Test {
 protected:
  ChainTableTest() : table_(*StateStore::open(folder_.path("state"))) {
    folder_.write("fw.rules", "deny tcp any any any 23\n");
    folder_.write("quotas.yaml", "default: {packet_memory_mb: 100}\n");
    table_.set_quotas(*Quotas::load(folder_.path("quotas.yaml")));
  }

  /// With `megabytes` of packet memory, and as much for a replacement.
  static ValidatedSpec spec(std::string const& name, std::uint32_t megabytes) {
    ValidatedSpec spec;
    spec.config.name = spec.config.tenant = name;
    spec.config.tuning.pool_slots = megabytes * 512;
    spec.options.workers = 1;
    spec.caller = {kUserOfChains, kUserOfChains, {}};
    return spec;
  }
  Result<ChainTable::Held> reserve(ValidatedSpec const& validated) {
    ApplyRecord applied{validated.config.name, validated.config.tenant, kUserOfChains, "", {}, validated.caller};
    return table_.reserve(validated, applied);
  }
  chain::ChainConfig any_chain() const {
    Result<chain::ChainConfig> config = chain::parse_chain(
        "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
        "  nfs:\n    - {name: fw, type: firewall, on: cpu, config: {rules: fw.rules, default: allow}}\n",
        folder_.path("a.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  /// Puts a chain that has its memory.
  void put(ValidatedSpec const& validated) {
    ChainEntry entry{};
    entry.applied = {validated.config.name, validated.config.tenant, kUserOfChains, "", {}, validated.caller};
    entry.run = std::make_shared<ChainRun>(any_chain(), runtime::RunOptions(), own_user(), registry_);
    const Status ready = entry.run->wait_until_ready();
    ASSERT_TRUE(ready.ok()) << ready;
    entry.amounts = amounts_of(validated.config, validated.options);
    ASSERT_TRUE(entry.holds_resources());
    table_.put(std::move(entry));
  }

  ScratchFolder folder_;
  nf::Registry registry_ = nf::builtin_nfs();
  ChainTable table_;
};

TEST_F(ChainTableTest, a_smaller_version_of_a_chain_frees_nothing_before_it_runs) {
  put(spec("a", 40));
  const Result<ChainTable::Held> smaller = reserve(spec("a", 1));
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_THAT(std::string(reserve(spec("b", 40)).status().message()),
              ::testing::HasSubstr("the quota 'packet_memory_mb' of user 3001 is 100; 80 used, 80 asked"));
}

TEST_F(ChainTableTest, a_larger_version_of_a_chain_counts_before_it_runs) {
  put(spec("a", 1));
  const Result<ChainTable::Held> larger = reserve(spec("a", 40));
  ASSERT_TRUE(larger.ok()) << larger.status();
  EXPECT_TRUE(absl::IsResourceExhausted(reserve(spec("b", 40)).status()));
  EXPECT_TRUE(reserve(spec("b", 10)).ok());
}

}  // namespace
}  // namespace catena::service
