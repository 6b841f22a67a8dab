// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hostcopy/accelerator_pool.hpp"
#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy {

struct AcceleratorOptions {
  int node = -1;                                   ///< of its thread: it prefers this node's engines
  std::chrono::nanoseconds patience{100'000'000};  ///< for a job; a slower engine is lost
  std::uint32_t busy_limit = 64;                   ///< jobs without room in a period, before another engine is taken
  std::chrono::nanoseconds busy_period{100'000'000};
  /// One job in so many has its bytes compared with their source; 0: no comparison. With a difference the engine is
  /// lost. Only 1 finds every early completion.
  std::uint32_t verify_every = 0;
};

/// The owner of jobs, such as an application. After an illegal job of it the CPU makes all its other ones: they may be
/// like the first, and would cost two engines each.
struct JobOwner {
  bool is_quarantined = false;
};

/// What became of the jobs of one Accelerator, and why engines were changed. Monotonic.
struct AcceleratorCounters {
  std::uint64_t by_engine = 0;    ///< jobs completed by an engine
  std::uint64_t by_cpu = 0;       ///< jobs made by the CPU
  std::uint64_t refused = 0;      ///< of by_cpu: the engine had no room
  std::uint64_t resubmitted = 0;  ///< to another engine, after the first one failed
  std::uint64_t illegal = 0;      ///< jobs on which two engines failed
  std::uint64_t quarantined = 0;  ///< owners of these
  std::uint64_t abandoned = 0;    ///< jobs of an engine without a working stop()
  std::uint64_t changes = 0;      ///< of a busy engine for another one
  std::uint64_t losses = 0;       ///< of an engine
};

/// A virtual accelerator: makes jobs by the engine of the pool it is attached to. Its user does not notice if
/// engines are busy or fail (HAVS, section IV-C).
///
/// - An engine without room for a job: the CPU makes it at once. More often than `busy_limit` times in a
///   period, the next idle engine takes the busy one's place.
/// - A lost engine: the next one gets the jobs in flight, one at a time; meanwhile the CPU makes new ones. No
///   engine is left: the CPU makes all.
/// - A job that fails alone on one engine after an engine failed with it is illegal: State::kIllegal, once, for its
///   user to reset its session. Its owner is quarantined. Jobs of other owners are not affected.
/// A wrong completion (an unknown job, a job twice) means a lost engine.
///
/// Jobs complete in any order. Belongs to one thread at a time. The destructor loses an engine with jobs in flight.
class Accelerator {
 public:
  /// A job from start() to forget().
  using Ticket = std::uint64_t;
  enum class State : std::uint8_t {
    kInFlight,
    kDone,       ///< all bytes are in place
    kIllegal,    ///< some bytes may be in place; source and destination may be used again
    kAbandoned,  ///< as kIllegal, and an engine may still write: the destination must never be used again
  };

  /// `pool` outlives it.
  Accelerator(AcceleratorPool& pool, AcceleratorOptions const& options);
  ~Accelerator();
  Accelerator(Accelerator const&) = delete;
  Accelerator& operator=(Accelerator const&) = delete;

  /// Starts a job of at least one move. `moves` and the memory live, and the sources stay as they are, until state() is
  /// another one than kInFlight. `owner`: outlives the job; null: without an owner.
  Ticket start(std::span<const Move> moves, JobOwner* owner = nullptr);
  /// Takes completed jobs from the engines, and replaces a failing engine. Never waits.
  void poll();
  State state(Ticket ticket) const { return slots_[slot_of(ticket)].state; }
  /// Ends a ticket whose job is not in flight.
  void forget(Ticket ticket);
  std::uint32_t in_flight() const {
    return current_.in_flight + retiring_.in_flight + static_cast<std::uint32_t>(suspects_.size());
  }
  /// That of new jobs; null: the CPU.
  Engine const* engine() const { return current_.engine; }
  AcceleratorCounters const& counters() const { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  /// What is recorded of a job.
  struct Slot {
    std::span<const Move> moves;
    Engine* engine = nullptr;  ///< that has it; null: no engine
    JobOwner* owner = nullptr;
    Clock::time_point since;  ///< epoch: not yet looked at by watch()
    std::uint32_t generation = 0;
    std::uint32_t next_free = kNone;  ///< while the slot is free
    State state = State::kDone;
    std::uint8_t failures = 0;  ///< engines failing with it
  };
  struct Attached {
    Engine* engine = nullptr;
    std::uint32_t in_flight = 0;
  };
  /// Jobs without room in the current engine.
  struct Refusals {
    Clock::time_point period_begin;
    std::uint32_t count = 0;
  };

  static std::uint32_t slot_of(Ticket ticket) { return static_cast<std::uint32_t>(ticket); }
  Ticket ticket_of(std::uint32_t slot) const { return std::uint64_t{slots_[slot].generation} << 32 | slot; }

  void submit(std::uint32_t slot);
  void make_by_cpu(std::uint32_t slot);
  void set_illegal(Slot& job);
  void note_refusal();
  void take_completions(Attached& attached);
  /// Whether the job is in flight on the attached engine.
  bool has(Attached const& attached, Engine::Job number) const;
  Status complete(Attached& attached, Engine::Completion const& completion);
  void fail_job(std::uint32_t slot, Engine const* engine);
  bool change_engine();
  void lose(Attached& attached, Status const& why);
  void try_suspects();
  void watch();

  AcceleratorPool* pool_;
  AcceleratorOptions options_;
  Attached current_;   ///< gets new jobs
  Attached retiring_;  ///< was busy, or failed with one job; goes back to the pool once its jobs are done
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;     ///< of slots_
  std::vector<std::uint32_t> suspects_;  ///< an engine failed with them; each waits to be tried alone
  std::optional<std::uint32_t> tried_;   ///< the suspect in flight
  Refusals refusals_;
  std::uint32_t polls_ = 0;
  AcceleratorCounters counters_;
};

}  // namespace catena::hostcopy
