// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/node_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "base/hostcopy/accelerator_pool.hpp"
#include "base/hostcopy/testing/faulty_engine.hpp"

namespace catena::hostcopy {
namespace {

/// A folder as Linux makes it: CPUs 0 and 1 at node 0, 2 and 10 at node 1, 3 at node 2.
class NodeTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"cpu0/node0", "cpu1/node0", "cpu2/node1", "cpu10/node1", "cpu3/topology", "cpufreq",
                                   "cpu4/nodes", "cpu5/node01", "cpu/node1"}) {
      std::filesystem::create_directories(folder_ / name);
    }
    std::ofstream(folder_ / "cpu6") << "no folder";
    std::filesystem::create_symlink("../../node/node2", folder_ / "cpu3/node2");  // as Linux has them, to nowhere
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "catena-nodes";
};

TEST_F(NodeTableTest, has_the_node_of_each_cpu) {
  const NodeTable table = NodeTable::read(folder_);
  constexpr std::array<std::pair<int, int>, 9> kNodes{
      {{0, 0}, {1, 0}, {2, 1}, {10, 1}, {3, 2}, {4, -1}, {5, -1}, {6, -1}, {-1, -1}}};
  for (auto const& [cpu, node] : kNodes) {
    EXPECT_EQ(table.node_of(cpu), node) << cpu;
  }
}

TEST_F(NodeTableTest, without_a_folder_is_a_machine_without_nodes) {
  EXPECT_EQ(NodeTable::read(folder_ / "none").node_of(0), -1);
}

TEST_F(NodeTableTest, gives_workers_engines_of_their_nodes_while_there_are_some) {
  using testing::FaultyEngine;
  const NodeTable table = NodeTable::read(folder_);
  std::array<testing::FaultyEngineScript, 4> scripts;
  std::vector<AcceleratorPool::Member> members;
  std::vector<Engine*> engines;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    members.push_back({.engine = std::make_unique<FaultyEngine>(scripts[i]), .node = static_cast<int>(i) / 2});
    engines.push_back(members.back().engine.get());
  }
  AcceleratorPool pool(std::move(members), {.jobs = 1, .moves = 1});
  EXPECT_EQ(pool.take(table.node_of(10)), engines[2]);
  EXPECT_EQ(pool.take(table.node_of(2)), engines[3]);
  EXPECT_EQ(pool.take(table.node_of(2)), engines[0]) << "of another node: none of its own is idle";
  pool.give_back(engines[3]);
  EXPECT_EQ(pool.take(table.node_of(2)), engines[3]) << "though the other one is longer idle";
  EXPECT_EQ(pool.take(table.node_of(4)), engines[1]) << "for a CPU without a node";
  EXPECT_EQ(pool.take(table.node_of(1)), nullptr);
}

}  // namespace
}  // namespace catena::hostcopy
