// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/flow.hpp"
#include "runtime/flow.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace catena::runtime {

/// Starts a command of the operator when a chain cannot take what comes, so that another one may be started elsewhere,
/// and again when it can (Simmer, section 3.3: what the first NF signals is for the operator). One at a time: while a
/// command runs, what has changed meanwhile is told when it has ended.
class CongestionHook {
 public:
  /// `chain`: its name, which the command finds in $CATENA_CHAIN beside $CATENA_STATE, congested or free.
  CongestionHook(chain::FlowHookConfig config, std::string chain, std::shared_ptr<SourcePauses const> pauses);
  ~CongestionHook() { end(); }
  CongestionHook(CongestionHook const&) = delete;
  CongestionHook& operator=(CongestionHook const&) = delete;

  /// Starts no more, and ends a command that still runs, with what it has started: by SIGTERM, and if it does not end
  /// then, by SIGKILL. What a command that has ended left behind goes on. Often is no harm. One thread at a time.
  void end();
  /// Commands that were started. Any thread.
  std::uint64_t runs() const { return runs_; }
  /// Those that could not be started, or that failed. Any thread.
  std::uint64_t failures() const { return failures_; }

 private:
  void watch();
  bool sleep(std::chrono::nanoseconds time);
  void start(bool is_congested);
  bool has_ended(bool waits);

  chain::FlowHookConfig config_;
  std::string chain_;
  std::shared_ptr<SourcePauses const> pauses_;
  pid_t command_ = -1;
  Counter runs_;
  Counter failures_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace catena::runtime
