// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <benchmark/benchmark.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <exception>
#include <stdexcept>
#include <utility>

/// Functions shared by benchmark programs.
namespace catena::nf::testing {

/// The value; throws std::runtime_error with the status if `result` is an error, because the benchmark needs the value.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(result.status().ToString());
  }
  return *std::move(result);
}

/// CPU time of this thread in seconds, independent of other load on the machine.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// main() of a benchmark program. Runs the benchmarks named on the command line and returns the exit status. It is 1,
/// with the reason in the log, if `started` is an error (of a step before, such as the start of the EAL), if the
/// command line is wrong, or if a benchmark throws.
inline int run_benchmarks(int argc, char** argv, Status const& started = absl::OkStatus()) {
  if (!started.ok()) {
    spdlog::critical("{}", started.ToString());
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  try {
    benchmark::RunSpecifiedBenchmarks();
  } catch (std::exception const& error) {
    spdlog::critical("{}", error.what());
    return 1;
  }
  return 0;
}

}  // namespace catena::nf::testing
