// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace catena::bench {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> numbers_of(std::vector<Trial> const& trials) {
  std::set<std::uint32_t> numbers;
  for (Trial const& trial : trials) {
    numbers.insert(trial.replicas);
  }
  return {numbers.begin(), numbers.end()};
}

TEST(Search, ends_after_two_numbers_that_bring_nothing) {
  const std::vector<Trial> trials =
      search_copies({{1, 2, 3, 4, 6, 8}, {""}, {"small"}}, [](Trial const& trial) -> Result<double> {
        return trial.tuning.empty() ? 100.0 / trial.replicas : 300.0;
      }).value();
  EXPECT_THAT(numbers_of(trials), ElementsAre(1, 2, 3));
  EXPECT_EQ(best_of(trials).replicas, 1U);
  EXPECT_EQ(best_of(trials).tuning, "small");
}

TEST(Search, tries_all_powers_of_two_where_they_are_needed) {
  // as latency on the CPU: worse with a second and a third copy, best with 16
  const std::map<std::uint32_t, double> scores{{1, 50}, {2, 30}, {3, 20}, {4, 10}, {8, 40}, {16, 600}};
  const std::vector<Trial> trials =
      search_copies({{1, 2, 3, 4, 6, 8, 12, 16}, {""}, {}, true}, [&scores](Trial const& trial) -> Result<double> {
        return scores.at(trial.replicas);
      }).value();
  EXPECT_THAT(numbers_of(trials), ElementsAre(1, 2, 3, 4, 8, 16));
  EXPECT_EQ(best_of(trials).replicas, 16U);
}

TEST(Search, tries_every_tuning_with_each_number) {
  const std::vector<Trial> trials =
      search_copies({{1, 2, 3}, {"", "small"}, {}}, [](Trial const& trial) -> Result<double> {
        return trial.tuning.empty() ? 10.0 : 10.0 * trial.replicas;
      }).value();
  ASSERT_EQ(trials.size(), 6U);
  EXPECT_EQ(best_of(trials).replicas, 3U);
  EXPECT_EQ(best_of(trials).tuning, "small");
  EXPECT_EQ(trials[0].scores.size(), 1U);
}

TEST(Search, decides_between_close_trials_by_the_median_of_three_runs) {
  int runs_of_one = 0;
  const std::vector<Trial> trials = search_copies({{1, 2}, {""}, {}}, [&](Trial const& trial) -> Result<double> {
                                      return trial.replicas == 2 ? 95 : ++runs_of_one == 1 ? 100 : 90;
                                    }).value();
  EXPECT_EQ(trials[0].scores.size(), 3U);
  EXPECT_EQ(best_of(trials).replicas, 2U);
}

TEST(Search, ends_with_the_error_of_a_trial) {
  EXPECT_EQ(
      search_copies({{1, 2}, {""}, {}}, [](Trial const&) -> Result<double> { return absl::InternalError("fell over"); })
          .status(),
      absl::InternalError("fell over"));
}

}  // namespace
}  // namespace catena::bench
