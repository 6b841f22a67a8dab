// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Moves within host memory: the engines that make them, and the choice of an engine.
namespace catena::hostcopy {

/// A copy of bytes from one place to another; the two do not overlap.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

/// Makes the moves now, on the calling thread.
void make_moves(std::span<const Move> moves);

/// Makes moves while its caller continues: the CPU (done at once, no waiting), a DMA engine, or an engine for tests.
/// Call order: configure() once, then submit() and poll() as often as needed. Belongs to one thread at a time. The
/// destructor stops the engine: no byte is moved afterwards.
class Engine {
 public:
  using Job = std::uint32_t;
  struct Limits {
    std::uint32_t jobs;   ///< in flight at a time
    std::uint32_t moves;  ///< of one job
  };
  virtual ~Engine() = default;
  virtual std::string name() const = 0;
  /// Allocates resources for `limits`. Errors: ResourceExhausted, Unavailable.
  virtual Status configure(Limits const& limits) = 0;
  /// Starts the moves of one job, in any order. Until poll() returns the job, `moves` and the memory of each move must
  /// live, and the sources must not change. ResourceExhausted: as many jobs as configured are in flight; the job may be
  /// submitted again later. Any other error: the engine is lost, as in poll().
  virtual Result<Job> submit(std::span<const Move> moves) = 0;
  /// Returns a completed job, each job once and in any order; nullopt if no job has completed. All bytes of the job are
  /// in place. Never waits. On an error the engine is lost: it has stopped, and of the jobs in flight some bytes were
  /// moved and others not.
  virtual Result<std::optional<Job>> poll() = 0;
};

/// The CPU: a job is done when submit() returns.
std::unique_ptr<Engine> make_cpu_engine();

/// A kind of engine: a row of the table in engines.cpp. Any thread.
struct EngineKind {
  std::string_view name;  ///< key of open_engine()
  /// OK if this machine has such an engine. Unavailable: the text names the missing part and how to get it.
  Status (*probe)();
  /// A new engine, owned by the caller and not configured. Errors: as probe().
  Result<std::unique_ptr<Engine>> (*open)();
};
/// The kinds of this build; static storage.
std::span<const EngineKind> engine_kinds();
inline constexpr std::string_view kCpuEngine = "cpu";
/// Opens an engine by the name of its kind. InvalidArgument lists the names; other errors: as EngineKind::open().
Result<std::unique_ptr<Engine>> open_engine(std::string_view name);

}  // namespace catena::hostcopy
