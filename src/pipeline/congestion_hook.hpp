// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/flow.hpp"
#include "pipeline/flow.hpp"

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

/// Starts a command of the operator when a chain becomes congested, so that another chain may be started elsewhere, and
/// again when the congestion ends (Simmer, section 3.3: the first NF signals to the operator). One command at a time:
/// changes during a command are reported after it has ended.
class CongestionHook {
 public:
  /// `chain`: its name. The command reads it in $CATENA_CHAIN, and congested or free in $CATENA_STATE.
  CongestionHook(chain::FlowHookConfig config, std::string chain, std::shared_ptr<SourcePauses const> pauses);
  ~CongestionHook() { end(); }
  CongestionHook(CongestionHook const&) = delete;
  CongestionHook& operator=(CongestionHook const&) = delete;

  /// Starts no more commands. Ends a running command and the processes started by it, by SIGTERM, then SIGKILL if
  /// needed. Processes left by a finished command keep running. May be called repeatedly. One thread at a time.
  void end();
  /// Number of commands started. Any thread.
  std::uint64_t runs() const { return runs_; }
  /// Number of commands that could not be started or failed. Any thread.
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
