// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sched/stage.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace catena::sched {

/// Splits stages 0 .. `stages` - 1 into at most `workers` runs of neighbours of about the same length: the assignment
/// before anything is known of the stages.
std::vector<std::vector<std::size_t>> assign_stages(std::size_t stages, std::uint32_t workers);

/// Distributes stages among `workers` (at least 1) by their busy times: the heaviest first, each to the worker with the
/// least so far. The busiest worker has at most 4/3 of its load in the best distribution (R. L. Graham, "Bounds on
/// Multiprocessing Timing Anomalies", 1969).
std::vector<std::vector<std::size_t>> balance_by_load(std::span<const std::uint64_t> busy_ns, std::size_t workers);

/// Polls the stages with `workers` threads until all are finished. Workers start with runs of neighbours; while one of
/// them is busy for half of the time or more, the distribution follows the stages' busy times. A worker without work
/// several times in a row yields its core for a moment. The first error of a stage is returned and stops every worker;
/// so does a worker for which the system has no thread (ResourceExhausted). `stop` only makes rx take no more packets;
/// packets inside are finished. Stages are told of their polls with work; waiting for a device is not busy time.
/// `cores`: worker i stays on cores[i % size]; empty: the system chooses. A core that the process may not use ends the
/// run with an error.
Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers, std::span<const std::uint32_t> cores = {});

}  // namespace catena::sched
