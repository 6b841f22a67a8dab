// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/results.hpp"

#include <catena/core/status.hpp>

#include <string>

namespace catena::bench {

/// What results.json of an output folder holds, but for time lines. Errors: NotFound; InvalidArgument where it is no
/// results.json of this benchmark.
Result<Results> read_results(std::string const& path);

/// Moves into `now`, which lists everything that is to be measured, what `earlier` measured of it: whole tables alone,
/// that is all cells of a part and chain without an error, so that no table is of two runs. Gives the number of cells.
/// FailedPrecondition where `earlier` is of another commit, or was measured with other options.
Result<std::size_t> take_over(Results&& earlier, std::size_t repeats, Results& now);

}  // namespace catena::bench
