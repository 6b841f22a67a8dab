// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy::testing {

/// The faults of a FaultyEngine, and its counters; outlives it.
struct FaultyEngineScript {
  static constexpr std::uint32_t kNever = 0xFFFFFFFF;
  /// A wrong completion.
  enum class Lie : std::uint8_t {
    kNone,
    kTwice,    ///< a completed job, again
    kUnknown,  ///< a job never enqueued
    kEarly,    ///< a job without its bytes, which are never moved
  };
  /// The fault with a job whose source is in `illegal`.
  enum class Illegal : std::uint8_t {
    kRefused,  ///< InvalidArgument
    kFailed,   ///< a completion with is_moved false
    kHalts,    ///< the engine is lost
  };

  std::uint32_t seed = 1;
  bool fails_to_start = false;
  std::uint32_t max_jobs = kNever;  ///< in flight; fewer than configured
  std::uint32_t mean_polls = 3;     ///< until something completes
  bool is_ordered = false;          ///< completes the oldest job
  std::uint32_t fails_after =
      kNever;  ///< completed jobs after which the engine is lost, with the other jobs half moved
  std::uint32_t stuck_after = kNever;  ///< enqueued jobs after which no job completes
  std::uint32_t lies_after = kNever;   ///< completed jobs after which it tells `lie`
  Lie lie = Lie::kNone;
  std::set<const std::byte*> illegal = {};
  std::span<const std::byte> illegal_memory = {};  ///< each source in it is as one in `illegal`
  Illegal with_illegal = Illegal::kFailed;
  bool cannot_stop = false;
  std::size_t max_memories = 0;  ///< registered at a time; 0: it reaches all memory
  // counters
  std::size_t memories = 0;  ///< registered
  std::size_t refused_memories = 0;
  std::uint32_t submitted = 0;
  std::uint32_t refused = 0;
  std::uint32_t done = 0;
  std::uint32_t out_of_order = 0;  ///< completed while an older job was in flight
};

/// A copy engine that completes jobs in random order, at random calls of dequeue_copy(), moves their bytes no earlier,
/// and fails as its script says.
class FaultyEngine final : public Engine {
 public:
  explicit FaultyEngine(FaultyEngineScript& script) : script_(&script), random_(script.seed) {}
  std::string name() const override { return "faulty"; }
  Capabilities capabilities() const override {
    return {.is_ordered = script_->is_ordered, .needs_registration = script_->max_memories != 0};
  }

  Status configure(Limits const& limits) override {
    limits_ = limits;
    return script_->fails_to_start ? absl::UnavailableError("no such engine") : absl::OkStatus();
  }

  Status register_memory(std::span<std::byte> memory) override {
    if (script_->max_memories != 0 && memories_.size() == script_->max_memories) {
      ++script_->refused_memories;
      return absl::ResourceExhaustedError("it reaches no more memories");
    }
    memories_.push_back(memory);
    script_->memories = memories_.size();
    return absl::OkStatus();
  }

  Status unregister_memory(std::span<std::byte> memory) override {
    std::erase_if(memories_, [&](std::span<std::byte> const& other) { return other.data() == memory.data(); });
    script_->memories = memories_.size();
    return absl::OkStatus();
  }

  Status enqueue_copy(Job job, std::span<const Move> moves) override {
    if (moves.empty() || moves.size() > limits_.moves) {
      return absl::InvalidArgumentError("a job of another size than was configured");
    }
    if (script_->max_memories != 0 && !std::ranges::all_of(moves, [this](Move const& move) {
          return reaches(move.from, move.bytes) && reaches(move.to, move.bytes);
        })) {
      return absl::InvalidArgumentError("unregistered memory");
    }
    if (script_->with_illegal == FaultyEngineScript::Illegal::kRefused && is_illegal(moves)) {
      return absl::InvalidArgumentError("memory that it does not reach");
    }
    if (jobs_.size() == limits_.jobs || jobs_.size() == script_->max_jobs) {
      ++script_->refused;
      return absl::ResourceExhaustedError("all channels work");
    }
    ++script_->submitted;
    jobs_.push_back({job, moves});
    return absl::OkStatus();
  }

  Result<std::optional<Completion>> dequeue_copy() override {
    Result<std::optional<Completion>> next = peek_copy();
    next_.reset();
    return next;
  }

  Result<std::optional<Completion>> peek_copy() override {
    if (!next_) {
      Result<std::optional<Completion>> next = choose();
      if (!next.ok()) {
        return next;
      }
      next_ = *next;
    }
    return next_;
  }

  bool stop() override {
    jobs_.clear();
    return !script_->cannot_stop;
  }

 private:
  struct Entry {
    Job job;
    std::span<const Move> moves;
  };

  bool is_illegal(std::span<const Move> moves) const {
    std::span<const std::byte> const& all = script_->illegal_memory;
    return std::ranges::any_of(moves, [&](Move const& move) {
      return script_->illegal.contains(move.from) || (move.from >= all.data() && move.from < all.data() + all.size());
    });
  }

  bool reaches(const std::byte* at, std::size_t bytes) const {
    return std::ranges::any_of(memories_, [&](std::span<std::byte> const& memory) {
      return at >= memory.data() && at + bytes <= memory.data() + memory.size();
    });
  }

  /// Moves the first half of every job.
  Status halt() {
    for (Entry const& entry : jobs_) {
      make_moves(entry.moves.first(entry.moves.size() / 2));
    }
    return absl::UnavailableError("the channel halted");
  }

  Result<std::optional<Completion>> choose() {
    if (jobs_.empty() || script_->submitted > script_->stuck_after || random_() % script_->mean_polls != 0) {
      return std::nullopt;
    }
    if (script_->done >= script_->fails_after) {
      return halt();
    }
    const auto entry = jobs_.begin() + static_cast<std::ptrdiff_t>(script_->is_ordered ? 0 : random_() % jobs_.size());
    const Entry chosen = *entry;
    if (script_->done >= script_->lies_after) {
      switch (script_->lie) {
        case FaultyEngineScript::Lie::kTwice:
          return Completion{last_, true};
        case FaultyEngineScript::Lie::kUnknown:
          return Completion{chosen.job + (Job{1} << 40), true};
        case FaultyEngineScript::Lie::kEarly:
          jobs_.erase(entry);
          return Completion{chosen.job, true};
        case FaultyEngineScript::Lie::kNone:
          break;
      }
    }
    if (is_illegal(chosen.moves)) {
      if (script_->with_illegal == FaultyEngineScript::Illegal::kHalts) {
        return halt();
      }
      jobs_.erase(entry);
      return Completion{chosen.job, false};
    }
    make_moves(chosen.moves);
    script_->out_of_order += entry == jobs_.begin() ? 0 : 1;
    ++script_->done;
    jobs_.erase(entry);
    last_ = chosen.job;
    return Completion{chosen.job, true};
  }

  FaultyEngineScript* script_;
  std::minstd_rand random_;
  Limits limits_{};
  std::vector<Entry> jobs_;
  std::vector<std::span<std::byte>> memories_;  ///< registered
  std::optional<Completion> next_;              ///< peeked
  Job last_ = 0;                                ///< completed
};

}  // namespace catena::hostcopy::testing
