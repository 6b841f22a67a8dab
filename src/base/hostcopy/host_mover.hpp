// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "base/hostcopy/accelerator.hpp"

namespace catena::hostcopy {

/// Makes moves of the caller's own memory, which cannot be illegal, by one engine, and by the CPU where the engine has
/// no room or fails. Belongs to one thread at a time.
class HostMover {
 public:
  using Ticket = Accelerator::Ticket;
  /// Uses the CPU.
  HostMover() : HostMover(make_cpu_engine(), {1, 1}, std::chrono::nanoseconds::max()) {}
  /// Configures `engine` for `limits`. If it is an error or that fails, or if the engine later fails or takes longer
  /// than `patience` for a job, the CPU replaces it and a warning is logged. Precondition: Engine::stop() of `engine`
  /// cannot fail.
  HostMover(Result<std::unique_ptr<Engine>> engine, Engine::Limits const& limits, std::chrono::nanoseconds patience);

  /// Starts a job of at least one move. Lifetimes: as in Accelerator::start(), until is_done().
  Ticket start(std::span<const Move> moves) { return accelerator_.start(moves); }
  /// Whether the job is done. Returns true once; then the ticket is invalid. Never waits.
  bool is_done(Ticket ticket);
  /// The name of the engine of new jobs.
  std::string engine() const;

 private:
  AcceleratorPool pool_;
  Accelerator accelerator_;
};

}  // namespace catena::hostcopy
