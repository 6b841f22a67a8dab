// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

namespace catena::runtime {

/// The end of a chain's run: the request for it, whether the chain ends by itself or is replaced, and the result.
/// Any thread, unless stated otherwise.
class RunEnd {
 public:
  RunEnd() = default;
  RunEnd(RunEnd const&) = delete;
  RunEnd& operator=(RunEnd const&) = delete;

  /// Requests the end: rx takes no more packets. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed); }
  /// The flag of stop(), for stages.
  std::atomic<bool>& stop_flag() { return stop_; }

  /// The chain is replaced: `migrated` are its NFs whose state moves. False, with no effect, if this was decided
  /// before, or decide() came first. By one thread at a time.
  bool pass_on(std::vector<nf::Instance const*> migrated);
  bool is_passed_on() const { return how_ == How::kPassedOn; }
  /// Unless it is replaced, the chain ends by itself from now on. Returns is_passed_on(). By the thread of the run.
  bool decide();
  /// Whether the state of `nf` moves. By the thread of the run, after decide().
  bool is_migrated(nf::Instance const& nf) const;

  /// The run has ended. `is_empty`: no packet is in flight. By the thread of the run.
  void finish(Status outcome, bool is_empty);
  bool has_ended() const { return has_ended_; }
  // After has_ended().
  Status const& outcome() const { return outcome_; }
  bool is_empty() const { return is_empty_; }

 private:
  enum class How : std::uint8_t { kOpen, kByItself, kPassedOn };

  std::atomic<bool> stop_{false};
  std::atomic<How> how_{How::kOpen};
  std::vector<nf::Instance const*> migrated_;  ///< constant once how_ is decided
  std::atomic<bool> has_ended_{false};
  Status outcome_;         ///< constant after has_ended_
  bool is_empty_ = false;  ///< likewise
};

}  // namespace catena::runtime
