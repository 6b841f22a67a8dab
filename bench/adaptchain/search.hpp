// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/spread.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace catena::bench {

/// Short runs with one number of copies of a chain and one tuning.
struct Trial {
  std::uint32_t replicas = 0;
  std::string tuning;          ///< beside that of the request; empty: only that
  std::vector<double> scores;  ///< one per run; higher is better
  double score() const { return spread_of(scores).median; }
};

/// Candidates of a search for the best number of copies.
struct SearchSpace {
  std::vector<std::uint32_t> replicas;  ///< ascending
  std::vector<std::string> tunings;     ///< of each number; not empty
  std::vector<std::string> more;        ///< tunings of the best number only
  /// Numbers that bring nothing end the search, except for later powers of two.
  bool needs_powers_of_two = false;
};

/// Runs a candidate once and returns its score.
using RunTrial = std::function<Result<double>(Trial const&)>;
/// Tries more and more copies until two numbers in a row bring nothing, then repeats the trials close to the best one
/// in turn, as short runs differ by themselves. Returns all trials. Errors: those of `run`.
Result<std::vector<Trial>> search_copies(SearchSpace const& space, RunTrial const& run);
/// Precondition: `trials` is not empty.
Trial const& best_of(std::vector<Trial> const& trials);

}  // namespace catena::bench
