// SPDX-License-Identifier: Apache-2.0
#include "pipeline/earlier_counts.hpp"

#include "pipeline/counts.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace catena::runtime {
namespace {

using metrics::Snapshot;

Snapshot of_firewall(std::uint64_t in, std::uint64_t denied) {
  Snapshot counts;
  counts.add(counts::kReceived, {}, in);
  counts.add(counts::kIn, {{"nf", "fw"}, {"shard", "0"}}, in);
  counts.add(counts::kDrops, {{"nf", "fw"}, {"reason", "denied"}, {"shard", "0"}}, denied);
  counts.add(counts::kSlotsInUse, {}, 7);
  return counts;
}

TEST(EarlierCounts, counters_go_on_and_gauges_are_those_of_the_chain) {
  Snapshot now = of_firewall(10, 1);
  add_counts_of(of_firewall(100, 20), false, now);
  EXPECT_EQ(now.sum(counts::kReceived), 110U);
  EXPECT_EQ(now.sum(counts::kIn, {{"nf", "fw"}}), 110U);
  EXPECT_EQ(now.sum(counts::kDrops, {{"reason", "denied"}}), 21U);
  EXPECT_EQ(now.sum(counts::kSlotsInUse), 7U);
  EXPECT_EQ(now.samples().size(), of_firewall(0, 0).samples().size());
}

TEST(EarlierCounts, those_of_a_shard_that_is_gone_are_of_another_one) {
  Snapshot before = of_firewall(100, 20);
  before.add(counts::kIn, {{"nf", "fw"}, {"shard", "1"}}, 50);
  Snapshot now = of_firewall(10, 1);
  add_counts_of(before, false, now);
  EXPECT_EQ(now.sum(counts::kIn, {{"nf", "fw"}, {"shard", "0"}}), 160U);
}

TEST(EarlierCounts, series_do_not_grow_with_replacements) {
  Snapshot now = of_firewall(0, 0);
  std::size_t series = 0;
  for (int i = 0; i < 100; ++i) {
    Snapshot before;
    const std::string name = "nf" + std::to_string(i);
    before.add(counts::kIn, {{"nf", name}, {"shard", "0"}}, 10);
    before.add(counts::kDrops, {{"nf", name}, {"reason", "r" + std::to_string(i)}, {"shard", "0"}}, 2);
    before.add(counts::kDrops, {{"nf", "fw"}, {"reason", "r" + std::to_string(i)}, {"shard", "0"}}, 3);
    before.add(counts::kBusy, {{"stage", name}, {"nf", name}}, 5);
    before.add(counts::kSentToNode, {{"from", "rx"}, {"to", name}}, 4);
    add_counts_of(before, false, now);
    series = i == 0 ? now.samples().size() : series;
  }
  EXPECT_EQ(now.samples().size(), series);
  EXPECT_EQ(now.sum(counts::kIn, {{"nf", EarlierCounts::kRemoved}}), 1000U);
  EXPECT_EQ(now.sum(counts::kDrops, {{"nf", EarlierCounts::kRemoved}, {"reason", EarlierCounts::kEarlier}}), 200U);
  EXPECT_EQ(now.sum(counts::kDrops, {{"nf", "fw"}, {"reason", EarlierCounts::kEarlier}}), 300U);
  EXPECT_EQ(now.sum(counts::kBusy, {{"stage", EarlierCounts::kRemoved}}), 500U);
  EXPECT_EQ(now.sum(counts::kSentToNode, {{"from", "rx"}, {"to", EarlierCounts::kRemoved}}), 400U);
}

TEST(EarlierCounts, reasons_of_rx_and_tx_keep_their_names) {
  Snapshot before = of_firewall(5, 0);
  before.add(counts::kRxDrops, {{"reason", "backlog_full"}}, 3);
  Snapshot now = of_firewall(0, 0);
  add_counts_of(before, false, now);
  EXPECT_EQ(now.sum(counts::kRxDrops, {{"reason", "backlog_full"}}), 3U);
}

TEST(EarlierCounts, statistics_are_those_of_the_chain_before_until_it_has_ended) {
  Snapshot before = of_firewall(0, 0);
  before.add(counts::kStatistic, {{"nf", "fw"}, {"name", "rules"}}, 9);
  for (const bool is_running : {true, false}) {
    Snapshot now = of_firewall(0, 0);
    add_counts_of(before, is_running, now);
    EXPECT_EQ(now.sum(counts::kStatistic), is_running ? 9U : 0U);
  }
}

}  // namespace
}  // namespace catena::runtime
