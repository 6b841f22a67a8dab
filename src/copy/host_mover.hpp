// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/engine.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::copy {

/// Gets moves made, whatever becomes of its engine: the CPU makes those that the engine has no room for, and, from then
/// on, all of them once the engine is lost. Jobs end in any order. Belongs to one thread at a time.
class HostMover {
 public:
  using Ticket = std::uint32_t;
  /// By the CPU.
  HostMover() : HostMover(make_cpu_engine(), {1, 1}, std::chrono::nanoseconds::max()) {}
  /// `engine` is configured for `limits`. One that cannot be, and later one that fails or takes longer than `patience`
  /// for a job, is replaced by the CPU, which a warning says.
  HostMover(std::unique_ptr<Engine> engine, Engine::Limits const& limits, std::chrono::nanoseconds patience);
  HostMover(HostMover const&) = delete;
  HostMover& operator=(HostMover const&) = delete;

  /// Starts a job of at least one move. As Engine::submit() about what must live, until is_done().
  Ticket start(std::span<const Move> moves);
  /// Whether the job is done; true once, then the ticket is no longer good. Never waits.
  bool is_done(Ticket ticket);
  /// The engine that new jobs go to.
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
  std::vector<Entry> entries_;  ///< by ticket
};

}  // namespace catena::copy
