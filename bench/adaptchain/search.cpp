// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/search.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace catena::bench {
namespace {

/// Numbers of copies in a row that are no faster than the best so far, after which more are not tried.
constexpr int kSlowerInARow = 2;
/// What is best is decided among the trials that came so close to the best, by the median of so many runs of each.
constexpr double kCloseToBest = 0.85;
constexpr std::size_t kRunsOfClose = 3;

}  // namespace

Trial const& best_of(std::vector<Trial> const& trials) { return *std::ranges::max_element(trials, {}, &Trial::score); }

Result<std::vector<Trial>> search_copies(SearchSpace const& space, RunTrial const& run) {
  std::vector<Trial> trials;
  const auto run_once = [&run](Trial& trial) -> Status {
    CATENA_ASSIGN_OR_RETURN(const double score, run(trial));
    trial.scores.push_back(score);
    return absl::OkStatus();
  };
  const auto try_all = [&](std::uint32_t replicas, std::vector<std::string> const& tunings) -> Status {
    for (std::string const& tuning : tunings) {
      CATENA_RETURN_IF_ERROR(run_once(trials.emplace_back(Trial{replicas, tuning, {}})));
    }
    return absl::OkStatus();
  };
  int slower = 0;
  for (const std::uint32_t replicas : space.replicas) {
    if (slower >= kSlowerInARow && !(space.needs_powers_of_two && std::has_single_bit(replicas))) {
      continue;
    }
    const double before = trials.empty() ? 0 : best_of(trials).score();
    CATENA_RETURN_IF_ERROR(try_all(replicas, space.tunings));
    slower = best_of(trials).score() > before ? 0 : slower + 1;
  }
  CATENA_RETURN_IF_ERROR(try_all(best_of(trials).replicas, space.more));
  const double close = best_of(trials).score() * kCloseToBest;
  std::vector<Trial*> again;
  for (Trial& trial : trials) {
    if (trial.score() >= close) {
      again.push_back(&trial);
    }
  }
  for (std::size_t number = 1; again.size() > 1 && number < kRunsOfClose; ++number) {
    for (Trial* trial : again) {
      CATENA_RETURN_IF_ERROR(run_once(*trial));
    }
  }
  return trials;
}

}  // namespace catena::bench
