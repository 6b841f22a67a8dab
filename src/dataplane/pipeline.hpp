// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/stage.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace catena::dataplane {

/// Splits `stages` into at most `workers` runs of neighbours of about the same length: which worker polls what.
std::vector<std::vector<Stage*>> assign_stages(std::vector<Stage*> const& stages, std::uint32_t workers);

/// Polls the stages with `workers` threads until all are finished. A worker that finds nothing to do several times in
/// a row gives its core away for a moment. The first error of a stage ends the run: every worker stops, and it is
/// returned. `stop` only makes rx take no more packets; what is inside is finished.
/// `busy_ns`: empty, or a counter for each stage, to which the time of its polls that found work is added; a stage that
/// waits for a device is not busy. Others may read them while the stages run.
Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers,
                  std::span<std::atomic<std::uint64_t>> busy_ns = {});

}  // namespace catena::dataplane
