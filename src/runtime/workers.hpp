// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/stage.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace catena::runtime {

/// Splits stages 0 .. `stages` - 1 into at most `workers` runs of neighbours of about the same length: which worker
/// polls what, as long as nothing is known of the stages.
std::vector<std::vector<std::size_t>> assign_stages(std::size_t stages, std::uint32_t workers);

/// Shares stages out among `workers` (at least 1) by how long each was busy: the heaviest first, each to the worker
/// with the least so far. The busiest worker has at most 4/3 of what the best shares would give it (R. L. Graham,
/// "Bounds on Multiprocessing Timing Anomalies", 1969).
std::vector<std::vector<std::size_t>> balance_by_load(std::span<const std::uint64_t> busy_ns, std::size_t workers);

/// Polls the stages with `workers` threads until all are finished. Workers begin with runs of neighbours; while one of
/// them is busy for half of the time or more, shares follow what stages cost. A worker that finds nothing to do several
/// times in a row gives its core away for a moment. The first error of a stage ends the run: every worker stops, and it
/// is returned; so does a worker for which the system has no thread (ResourceExhausted). `stop` only makes rx take no
/// more packets; what is inside is finished. Stages are told of their polls that found work; one that waits for a
/// device is not busy. `cores`: where worker i is to stay, cores[i % size]; empty: where the system puts it. A core
/// that the process may not use ends the run with an error.
Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers, std::span<const std::uint32_t> cores = {});

}  // namespace catena::runtime
