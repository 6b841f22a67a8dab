// SPDX-License-Identifier: Apache-2.0
#include "pipeline/replan.hpp"

#include "pipeline/nf_making.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

chain::ChainConfig replan_chain(std::vector<std::string> const& nfs, std::string const& more = {}) {
  std::string text =
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: c}\nspec:\n  rx: {generator: {}}\n  tx: null\n";
  text += concat(more, "  nfs:\n");
  for (std::string const& nf : nfs) {
    text += concat("    - {", nf, "}\n");
  }
  Result<chain::ChainConfig> chain = chain::parse_chain(text, "/c.yaml");
  EXPECT_TRUE(chain.ok()) << chain.status();
  return *std::move(chain);
}

const std::string kDenies = "name: a, type: firewall, isolation: none, config: {default: deny}";
const std::string kAllows = "name: b, type: firewall, isolation: none, config: {default: allow}";

/// A chain with its NFs in one segment, by flow.
class RunningNfs {
 public:
  explicit RunningNfs(chain::ChainConfig config, std::vector<nf::NamedFile> const& files = {})
      : config_(std::move(config)) {
    std::vector<std::vector<NfEntry>> shards(config_.shards);
    for (std::vector<NfEntry>& shard : shards) {
      for (chain::NfConfig const& nf : config_.nfs) {
        NfEntry entry = testing::entry_of(nf.name);
        entry.config = nf;
        entry.files = files;
        entry.content = content_of(nf, files);
        shard.push_back(std::move(entry));
      }
    }
    std::vector<Segment> segments;
    segments.push_back(testing::segment_of(0, std::move(shards)));
    segments.front().part.shards = config_.shards;
    pipeline_ = Pipeline({}, std::move(segments), 7);
  }
  Replan to(chain::ChainConfig const& next, bool is_shared = false) const {
    return {config_, pipeline_, next, RunOptions(), is_shared};
  }
  bool is_same(chain::ChainConfig const& next) const { return is_same_chain(config_, pipeline_, next); }

 private:
  chain::ChainConfig config_;
  Pipeline pipeline_;
};

std::vector<std::optional<std::size_t>> kept_of(Replan const& replan, std::size_t nfs) {
  std::vector<std::optional<std::size_t>> kept;
  for (std::size_t nf = 0; nf < nfs; ++nf) {
    kept.push_back(replan.kept(nf));
  }
  return kept;
}

TEST(Replan, an_unchanged_nf_is_kept_wherever_it_is) {
  const RunningNfs running(replan_chain({kDenies, kAllows}));
  const chain::ChainConfig next =
      replan_chain({kAllows, "name: new, type: firewall, isolation: none, config: {}", kDenies});
  const Replan replan = running.to(next);
  EXPECT_THAT(kept_of(replan, 3), ElementsAre(Optional(1U), Eq(std::nullopt), Optional(0U)));
  EXPECT_TRUE(replan.has_moved_nfs());
  EXPECT_TRUE(replan.removed().empty());
  EXPECT_FALSE(running.is_same(next));
  EXPECT_TRUE(running.is_same(replan_chain({kDenies, kAllows})));
}

TEST(Replan, changed_and_removed_nfs_are_named) {
  const RunningNfs running(replan_chain({kDenies, kAllows}));
  const chain::ChainConfig next =
      replan_chain({"name: a, type: firewall, isolation: none, config: {default: allow}"}, "  workers: 2\n");
  const Replan replan = running.to(next);
  EXPECT_FALSE(replan.is_unchanged(0));
  EXPECT_EQ(replan.kept(0), std::nullopt);
  EXPECT_THAT(replan.removed(), ElementsAre("b"));
  EXPECT_THAT(replan.changed_keys(), ElementsAre("'workers'"));
  EXPECT_FALSE(replan.has_moved_nfs());
}

TEST(Replan, an_nf_with_a_changed_file_is_created_again) {
  const ScratchFolder folder;
  folder.write("rules", "allow any\n");
  const std::string rules = folder.path("rules");
  const chain::ChainConfig chain =
      replan_chain({concat("name: a, type: firewall, isolation: none, config: {rules: ", rules, "}")});
  const RunningNfs running(chain, {{"rules", rules, "/c.yaml:7:1", false}});
  EXPECT_TRUE(running.to(chain).kept(0).has_value());
  EXPECT_TRUE(running.is_same(chain));
  folder.write("rules", "deny any\n");
  EXPECT_FALSE(running.to(chain).kept(0).has_value());
  EXPECT_FALSE(running.is_same(chain));
}

TEST(Replan, nfs_on_a_device_or_with_other_packets_are_created_again) {
  const RunningNfs running(replan_chain({kDenies, kAllows}, "  shards: 2\n"));
  chain::ChainConfig next = replan_chain({kDenies, kAllows}, "  shards: 2\n");
  EXPECT_THAT(kept_of(running.to(next, true), 2), Each(Eq(std::nullopt))) << "they share a device";
  Replan replan = running.to(next);
  EXPECT_FALSE(replan.fit_to(std::vector{chain::Segment{0, 2, 2, std::nullopt}}));
  EXPECT_THAT(kept_of(replan, 2), ElementsAre(Optional(0U), Optional(1U)));
  EXPECT_TRUE(replan.fit_to(std::vector{chain::Segment{0, 2, 2, 1}})) << "b divides the packets";
  EXPECT_THAT(kept_of(replan, 2), Each(Eq(std::nullopt)));
  next.nfs[1].on = plan::Processor::kGpu;
  replan = running.to(next);
  EXPECT_THAT(kept_of(replan, 2), ElementsAre(Optional(0U), Eq(std::nullopt)));
  EXPECT_TRUE(replan.is_unchanged(1)) << "it is placed elsewhere";
  const chain::ChainConfig more = replan_chain({kDenies, kAllows}, "  shards: 3\n");
  replan = running.to(more);
  EXPECT_TRUE(replan.fit_to(std::vector{chain::Segment{0, 2, 3, std::nullopt}}));
  EXPECT_THAT(kept_of(replan, 2), Each(Eq(std::nullopt)));
}

}  // namespace
}  // namespace catena::runtime
