// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/core/process_needs.hpp"

/// Moves within host memory: engines, and their choice, supervision and replacement.
namespace catena::hostcopy {

/// A copy of bytes from one place to another; the two do not overlap.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

/// Makes the moves now, on the calling thread.
void make_moves(std::span<const Move> moves);

/// Makes moves while its caller continues: the CPU (done at once, no waiting), a DMA engine, a GPU, or an engine for
/// tests. The calls are those of the accelerator layer of the HAVS paper (section IV-C): configure, enqueue_copy,
/// dequeue_copy, peek_copy. Call order: configure() once, then the others as often as needed. Belongs to one thread at
/// a time. The destructor stops the engine.
class Engine {
 public:
  /// The caller's number of a job; the engine hands it back with the completion. Not used twice while in flight.
  using Job = std::uint64_t;
  struct Limits {
    std::uint32_t jobs;   ///< in flight at a time
    std::uint32_t moves;  ///< of one job
  };
  struct Capabilities {
    bool is_cpu = false;              ///< enqueue_copy() makes the job on the calling thread
    bool is_ordered = false;          ///< jobs complete in the order in which they were enqueued
    bool needs_registration = false;  ///< reaches only memory given to register_memory()
    std::uint32_t largest_move = std::numeric_limits<std::uint32_t>::max();  ///< bytes
    std::uint32_t alignment = 1;  ///< of both addresses and the length of a move, bytes
    int node = -1;                ///< the NUMA node of the engine; -1: at no node
  };
  struct Completion {
    Job job;
    bool is_moved;  ///< false: the engine works, but could not make this job; some of its bytes may have been moved
  };
  virtual ~Engine() = default;
  virtual std::string name() const = 0;
  virtual Capabilities capabilities() const { return {}; }
  /// Allocates resources for `limits`. Again after stop(): starts the engine afresh. Errors: ResourceExhausted,
  /// Unavailable.
  virtual Status configure(Limits const& limits) = 0;
  /// Lets the engine reach `memory`, which lives until unregister_memory() or longer than the engine. Before the first
  /// job with it. Errors: ResourceExhausted, Unavailable.
  virtual Status register_memory(std::span<std::byte> /*memory*/) { return absl::OkStatus(); }
  /// Ends register_memory() of the same bytes; without effect on unregistered memory. Precondition: no job with it is
  /// in flight. On an error the engine may still access the memory.
  virtual Status unregister_memory(std::span<std::byte> /*memory*/) { return absl::OkStatus(); }
  /// Starts the moves of one job, in any order. Until the job is dequeued, `moves` and the memory of each move must
  /// live, and the sources must not change. ResourceExhausted: as many jobs as configured are in flight; the job may be
  /// enqueued again later. InvalidArgument: a job beyond this engine (capabilities(), limits). Any other
  /// error: the engine is lost, as in dequeue_copy().
  virtual Status enqueue_copy(Job job, std::span<const Move> moves) = 0;
  /// Returns a completed job, each job once; nullopt: no job has completed. All bytes of a moved job are in place.
  /// Never waits. On an error the engine is lost: of the jobs in flight some bytes were moved and others not.
  virtual Result<std::optional<Completion>> dequeue_copy() = 0;
  /// As dequeue_copy(), but keeps the completion.
  virtual Result<std::optional<Completion>> peek_copy() = 0;
  /// Ends all jobs in flight. Never waits long. False: the engine may still write to their destinations, whose memory
  /// must not be used again.
  virtual bool stop() { return true; }
};

/// The CPU by memcpy: a job is done when enqueue_copy() returns. Engines of the CPU have no limits.
std::unique_ptr<Engine> make_cpu_engine();

/// A kind of engine: a row of a table such as engine_kinds(). Any thread.
struct EngineKind {
  std::string_view name;  ///< key of open_engine()
  /// OK if this machine has such an engine. Unavailable: the text names the missing part and how to get it.
  Status (*probe)();
  /// A new engine, owned by the caller and not configured. Errors: as probe().
  Result<std::unique_ptr<Engine>> (*open)();
  std::string_view describe;  ///< the copying part, in a few words
  bool is_for_tests = false;  ///< copies by other cores of this machine: never faster than the CPU
  /// The needs of a process in a sandbox for opening the engine; null: nothing. Unimplemented: no sandbox can have the
  /// engine, and the text names others.
  Result<ProcessNeeds> (*needs)() = nullptr;
};
/// The kinds of this component; static storage.
std::span<const EngineKind> engine_kinds();
inline constexpr std::string_view kCpuEngine = "cpu";
/// The kind of this name in `kinds`. InvalidArgument lists the names.
Result<EngineKind> find_kind(std::string_view name, std::span<const EngineKind> kinds);
/// Opens an engine by the name of its kind in `kinds`. Errors: as find_kind() and EngineKind::open().
Result<std::unique_ptr<Engine>> open_engine(std::string_view name, std::span<const EngineKind> kinds = engine_kinds());

}  // namespace catena::hostcopy
