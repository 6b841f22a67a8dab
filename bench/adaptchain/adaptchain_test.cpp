// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "bench/adaptchain/cells.hpp"
#include "bench/chains/measure.hpp"

namespace catena::bench {
namespace {

std::vector<Cell> cells_of(std::map<std::string, std::string> settings) {
  static const Part kPart = adaptchain_part();
  Told told;
  told.out = "unused";
  told.settings = std::move(settings);
  const Result<Request> request = Request::create(kPart, told);
  EXPECT_TRUE(request.ok()) << request.status();
  return list_cells(*request);
}

TEST(Cells, of_every_group_are_listed_where_they_are_asked_for) {
  const std::vector<Cell> cells = cells_of({{"sizes", "64,1518"}, {"groups", "stages,batch,conflicts"}});
  const auto count = [&cells](Group group) {
    return std::ranges::count_if(cells, [group](Cell const& cell) { return cell.group == group; });
  };
  EXPECT_EQ(count(Group::kStages), 2 * 2 * 2) << "two NFs, host and device, two sizes";
  EXPECT_EQ(count(Group::kBatch), 2 * 2);
  EXPECT_EQ(count(Group::kConflicts), 3 * 3) << "three chains, three loads";
  EXPECT_EQ(cells.size(), 21U);
  EXPECT_EQ(cells_of({{"sizes", "64,1518"}, {"groups", "stages,batch,conflicts"}, {"chains", "C3,IPsec"}}).size(),
            2U + 4);
}

TEST(Cells, of_modes_are_those_that_are_named) {
  const std::vector<Cell> cells =
      cells_of({{"sizes", "64"}, {"groups", "throughput"}, {"chains", "C4"}, {"modes", "copy, staged,adaptive"}});
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].mode, kCopyStaged);
  EXPECT_EQ(cells[1].mode, kAdaptive);
}

TEST(Score, prefers_a_carried_load_then_low_latency) {
  RunResult fast;
  fast.packets_per_s = 9e8;
  RunResult faster = fast;
  faster.packets_per_s = 9.5e8;
  EXPECT_GT(score_of(faster), score_of(fast)) << "without a load";

  RunResult short_of_load = faster;
  short_of_load.offered_per_s = 1e9;
  short_of_load.taken = 0.95;
  RunResult slow;
  slow.packets_per_s = 1e6;
  slow.offered_per_s = 1e6;
  slow.latency.add(10'000'000'000);
  RunResult quick = slow;
  quick.latency = {};
  quick.latency.add(50'000);
  EXPECT_GT(score_of(slow), score_of(short_of_load));
  EXPECT_GT(score_of(quick), score_of(slow));
}

TEST(Cells, of_places_are_told_apart_by_their_copies) {
  const std::vector<Cell> cells = cells_of({{"sizes", "64"}, {"groups", "places"}, {"chains", "S_d"}});
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_EQ(cells[0].mode, kCpu);
  EXPECT_EQ(cells[0].key()["copies"], kBestReplicas);
  EXPECT_EQ(cells[1].key()["copies"], "1");
  EXPECT_EQ(cells[2].key()["copies"], kBestReplicas);
  EXPECT_NE(cells[1].key(), cells[2].key());
}

TEST(Cells, of_sources_are_told_apart_by_their_copies) {
  const std::vector<Cell> cells = cells_of({{"sizes", "64"}, {"groups", "source"}});
  ASSERT_EQ(cells.size(), 2U * tried_replicas().size());
  EXPECT_NE(cells[0].key(), cells[1].key());
  EXPECT_EQ(cells_of({{"sizes", "64"}, {"groups", "source"}, {"replicas", "5"}}).size(), 2U);
}

}  // namespace
}  // namespace catena::bench
