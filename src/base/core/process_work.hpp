// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>

/// Work of the whole process, requested by any of its threads: opening drivers, compiling kernels, all kept for the
/// life of the process. If its threads have different rights, the process runs such work with its own.
namespace catena {

/// Runs `work` and returns when it is done.
using ProcessWorkRunner = std::function<void(std::function<void()> const& work)>;

inline ProcessWorkRunner& process_work_runner() {
  static ProcessWorkRunner runner;
  return runner;
}

/// Called before any thread does such work.
inline void set_process_work_runner(ProcessWorkRunner runner) { process_work_runner() = std::move(runner); }

/// Returns the result of `work`. Runs it in this thread, unless a runner was set. Any thread.
template <typename Work>
auto do_process_work(Work const& work) -> decltype(work()) {
  if (!process_work_runner()) {
    return work();
  }
  std::optional<decltype(work())> result;
  process_work_runner()([&] { result.emplace(work()); });
  return *std::move(result);
}

}  // namespace catena
