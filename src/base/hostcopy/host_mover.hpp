// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hostcopy/engine.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::hostcopy {

/// Makes moves even if its engine fails. The CPU makes moves for which the engine has no free job, and all moves once
/// the engine is lost. Jobs complete in any order. Belongs to one thread at a time.
class HostMover {
 public:
  using Ticket = std::uint32_t;
  /// Uses the CPU.
  HostMover() : HostMover(make_cpu_engine(), {1, 1}, std::chrono::nanoseconds::max()) {}
  /// Configures `engine` for `limits`. If it is an error or that fails, or if the engine later fails or takes longer
  /// than `patience` for a job, the CPU replaces it and a warning is logged.
  HostMover(Result<std::unique_ptr<Engine>> engine, Engine::Limits const& limits, std::chrono::nanoseconds patience);
  HostMover(HostMover const&) = delete;
  HostMover& operator=(HostMover const&) = delete;

  /// Starts a job of at least one move. Lifetimes: as in Engine::submit(), until is_done().
  Ticket start(std::span<const Move> moves);
  /// Whether the job is done. Returns true once; then the ticket is invalid. Never waits.
  bool is_done(Ticket ticket);
  /// The engine of new jobs.
  Engine const& engine() const { return *engine_; }

 private:
  struct Entry {
    std::span<const Move> moves;
    Engine::Job job = 0;
    std::chrono::steady_clock::time_point since;
    enum class State : std::uint8_t { kFree, kInFlight, kDone } state = State::kFree;
  };
  void collect();
  void check_patience();
  void lose(Status const& why);

  std::chrono::nanoseconds patience_;
  std::unique_ptr<Engine> engine_;
  std::vector<Entry> entries_;  ///< indexed by ticket
};

}  // namespace catena::hostcopy
