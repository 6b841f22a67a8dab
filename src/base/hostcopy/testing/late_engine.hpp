// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <vector>

#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy::testing {

/// Settings and counters of a LateEngine; outlives it.
struct LateEngineScript {
  static constexpr std::uint32_t kNever = 0xFFFFFFFF;
  std::uint32_t seed = 1;
  std::uint32_t max_jobs = kNever;     ///< in flight; more are refused, though configured
  std::uint32_t fails_after = kNever;  ///< completed jobs after which the engine is lost, with the other jobs half
                                       ///< moved
  bool fails_to_start = false;
  bool is_stuck = false;  ///< jobs never complete
  // counters
  std::uint32_t submitted = 0;
  std::uint32_t refused = 0;
  std::uint32_t done = 0;
  std::uint32_t out_of_order = 0;  ///< completed while an older job was in flight
};

/// A copy engine that completes jobs in random order, at random calls of poll(), and moves their bytes no earlier.
class LateEngine final : public Engine {
 public:
  explicit LateEngine(LateEngineScript& script) : script_(&script), random_(script.seed) {}
  std::string name() const override { return "late"; }

  Status configure(Limits const& limits) override {
    limits_ = limits;
    return script_->fails_to_start ? absl::UnavailableError("no such engine") : absl::OkStatus();
  }

  Result<Job> submit(std::span<const Move> moves) override {
    if (moves.empty() || moves.size() > limits_.moves) {
      return absl::InternalError("a job of another size than was configured");
    }
    if (jobs_.size() == limits_.jobs || jobs_.size() == script_->max_jobs) {
      ++script_->refused;
      return absl::ResourceExhaustedError("all channels work");
    }
    ++script_->submitted;
    jobs_.push_back({next_, moves});
    return next_++;
  }

  Result<std::optional<Job>> poll() override {
    if (script_->done >= script_->fails_after && !jobs_.empty()) {
      for (Entry const& entry : jobs_) {
        make_moves(entry.moves.first(entry.moves.size() / 2));
      }
      return absl::UnavailableError("the channel halted");
    }
    if (jobs_.empty() || script_->is_stuck || random_() % 3 != 0) {
      return std::nullopt;
    }
    const auto entry = jobs_.begin() + static_cast<std::ptrdiff_t>(random_() % jobs_.size());
    const Job job = entry->job;
    make_moves(entry->moves);
    script_->out_of_order += entry == jobs_.begin() ? 0 : 1;
    ++script_->done;
    jobs_.erase(entry);
    return job;
  }

 private:
  struct Entry {
    Job job;
    std::span<const Move> moves;
  };

  LateEngineScript* script_;
  std::minstd_rand random_;
  Limits limits_{};
  std::vector<Entry> jobs_;
  Job next_ = 7;
};

}  // namespace catena::hostcopy::testing
