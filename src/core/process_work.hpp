// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>

/// Work of the process, whichever thread it comes up in: drivers are opened, kernels compiled and kept for all that the
/// process does later. A process whose threads have different rights does it with its own.
namespace catena {

/// Does `work`, and returns when it is done.
using ProcessWorkRunner = std::function<void(std::function<void()> const& work)>;

inline ProcessWorkRunner& process_work_runner() {
  static ProcessWorkRunner runner;
  return runner;
}

/// Before there are threads that do such work.
inline void set_process_work_runner(ProcessWorkRunner runner) { process_work_runner() = std::move(runner); }

/// What `work` returns; in this thread, unless a runner was set. Any thread.
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
