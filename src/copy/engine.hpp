// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

/// Moves inside the host's memory: what makes them, and who decides what makes them.
namespace catena::copy {

/// Bytes that go from one place to another; the two do not overlap.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

/// Makes the moves, now, on the thread that calls.
void make_moves(std::span<const Move> moves);

/// Makes moves while its caller does something else: the CPU (at once, and then there is nothing to wait for), a DMA
/// engine, or what a test needs. Call order: configure() once, then submit() and poll() as often as wanted. Belongs to
/// one thread at a time. Destroying it stops it: no byte is moved afterwards.
class Engine {
 public:
  using Job = std::uint32_t;
  struct Limits {
    std::uint32_t jobs;   ///< that are in flight at one time
    std::uint32_t moves;  ///< of one job
  };
  virtual ~Engine() = default;
  virtual std::string name() const = 0;
  /// Takes what it needs for so much work. Errors: ResourceExhausted, Unavailable.
  virtual Status configure(Limits const& limits) = 0;
  /// Starts the moves of one job, in any order among themselves; `moves` and what they name must live, and the sources
  /// must not change, until poll() has named the job. Errors: ResourceExhausted where as many jobs as configured are in
  /// flight, and then the job can be given again later; any other means that the engine is lost, as in poll().
  virtual Result<Job> submit(std::span<const Move> moves) = 0;
  /// A job whose bytes are all where they belong, each job once and in any order; none where none is. Never waits. An
  /// error: the engine is lost. It has stopped, and of what is in flight some bytes were moved and others not.
  virtual Result<std::optional<Job>> poll() = 0;
};

/// The CPU: a job is done when submit() returns.
std::unique_ptr<Engine> make_cpu_engine();

}  // namespace catena::copy
