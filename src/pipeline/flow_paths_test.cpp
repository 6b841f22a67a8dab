// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_paths.hpp"

#include "chain/chain_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// Of rx, and of the NFs a, b and c.
std::vector<chain::NextNodeTable> next_nodes_of(std::string const& graph) {
  const Result<chain::ChainConfig> chain = chain::parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs: [{name: a, type: firewall}, {name: b, type: firewall}, {name: c, type: firewall}]\n  graph: " +
          graph + "\n",
      "c.yaml");
  EXPECT_TRUE(chain.ok()) << chain.status();
  std::vector<chain::NextNodeTable> tables;
  for (const std::size_t from : {chain::kRx, std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    tables.push_back(*chain::NextNodeTable::create(*chain->graph, from, {}));
  }
  return tables;
}

TEST(FlowPaths, without_tables_each_nf_is_next_to_the_one_before) {
  const FlowPaths paths{.nfs = {{"a"}, {"b"}}};
  EXPECT_FALSE(paths.has_branches());
  EXPECT_THAT(paths.nfs_after(0), ElementsAre(0));
  EXPECT_THAT(paths.nfs_after(1), ElementsAre(1));
  EXPECT_THAT(paths.nfs_after(2), IsEmpty());
  EXPECT_FALSE(paths.is_before_tx(1));
  EXPECT_TRUE(paths.is_before_tx(2));
  EXPECT_THAT(paths.senders(), ElementsAre(1, 1));
  EXPECT_TRUE(FlowPaths{}.is_before_tx(0)) << "a chain without NFs";
}

TEST(FlowPaths, of_a_graph_are_those_of_its_tables) {
  const std::vector<chain::NextNodeTable> tables = next_nodes_of(
      "[{from: rx, match: {rx_port: 0}, to: b}, {from: rx, to: a}, {from: a, match: {rx_port: 0}, to: tx}, "
      "{from: a, to: c}, {from: b, to: c}, {from: c, to: tx}]");
  const FlowPaths paths{.nfs = {{"a"}, {"b"}, {"c"}}, .tables = tables};
  EXPECT_TRUE(paths.has_branches());
  EXPECT_THAT(paths.nfs_after(0), UnorderedElementsAre(0, 1));
  EXPECT_THAT(paths.nfs_after(1), ElementsAre(2)) << "tx is no NF";
  EXPECT_THAT(paths.nfs_after(3), IsEmpty());
  EXPECT_TRUE(paths.is_before_tx(1));
  EXPECT_FALSE(paths.is_before_tx(2));
  EXPECT_TRUE(paths.is_before_tx(3));
  EXPECT_THAT(paths.senders(), ElementsAre(1, 1, 2));
}

TEST(FlowPaths, of_a_graph_in_a_row_have_no_branches) {
  const std::vector<chain::NextNodeTable> tables =
      next_nodes_of("[{from: rx, to: a}, {from: a, to: b}, {from: b, to: c}, {from: c, to: tx}]");
  EXPECT_FALSE((FlowPaths{.nfs = {{"a"}, {"b"}, {"c"}}, .tables = tables}.has_branches()));
}

TEST(FlowPaths, packets_keep_their_shard_within_a_segment_and_from_an_rx_of_their_own) {
  FlowPaths paths{.nfs = {{"a", 0}, {"b", 0}, {"c", 1}}};
  EXPECT_TRUE(paths.keeps_shard(1, 1));
  EXPECT_FALSE(paths.keeps_shard(2, 2)) << "of another segment";
  EXPECT_FALSE(paths.keeps_shard(0, 0)) << "one rx for all shards";
  paths.has_own_ends = true;
  EXPECT_TRUE(paths.keeps_shard(0, 0));
}

}  // namespace
}  // namespace catena::runtime
