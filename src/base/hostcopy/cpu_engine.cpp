// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/engine.hpp"

#include <cstring>
#include <vector>

namespace catena::hostcopy {
namespace {

/// So many moves ahead their first bytes are asked for: packets lie too far apart for the CPU to guess the next.
constexpr std::size_t kPrefetchAhead = 6;

class CpuEngine final : public Engine {
 public:
  std::string name() const override { return "cpu"; }

  Status configure(Limits const& limits) override {
    done_.reserve(limits.jobs);
    return absl::OkStatus();
  }

  Result<Job> submit(std::span<const Move> moves) override {
    make_moves(moves);
    done_.push_back(next_);
    return next_++;
  }

  Result<std::optional<Job>> poll() override {
    if (done_.empty()) {
      return std::nullopt;
    }
    const Job job = done_.back();
    done_.pop_back();
    return job;
  }

 private:
  std::vector<Job> done_;
  Job next_ = 0;
};

}  // namespace

void make_moves(std::span<const Move> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (i + kPrefetchAhead < moves.size()) {
      __builtin_prefetch(moves[i + kPrefetchAhead].from);
    }
    std::memcpy(moves[i].to, moves[i].from, moves[i].bytes);
  }
}

std::unique_ptr<Engine> make_cpu_engine() { return std::make_unique<CpuEngine>(); }

Status probe_cpu_engine() { return absl::OkStatus(); }
Result<std::unique_ptr<Engine>> open_cpu_engine() { return make_cpu_engine(); }

}  // namespace catena::hostcopy
