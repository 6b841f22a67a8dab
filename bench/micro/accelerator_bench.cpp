// SPDX-License-Identifier: Apache-2.0
// What the accelerator layer itself costs (HAVS, section V-E):
//   record  cycles of a job from start() to forget(), over those of the bare engine: what the record of it takes
//   change  from the moment at which an engine is found to be lost until the next one has accepted its first job, with
//           so many jobs in flight; the next engine is started
// The engine takes a job, moves nothing, and completes it at the next poll, so nothing but the layer is measured.
#include <benchmark/benchmark.h>
#include <spdlog/spdlog.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/hostcopy/accelerator.hpp"

namespace catena::hostcopy {
namespace {

/// Cycles at which an engine was lost, and at which another one accepted a job.
struct Times {
  std::uint64_t lost = 0;
  std::uint64_t accepted = 0;
};

class IdleEngine final : public Engine {
 public:
  explicit IdleEngine(Times* times, bool is_doomed = false) : times_(times), is_doomed_(is_doomed) {}
  std::string name() const override { return "idle"; }
  Status configure(Limits const& limits) override {
    ring_.resize(limits.jobs);
    return absl::OkStatus();
  }
  Status enqueue_copy(Job job, std::span<const Move> /*moves*/) override {
    if (times_ != nullptr && times_->accepted == 0 && times_->lost != 0) {
      times_->accepted = __rdtsc();
    }
    if (head_ - tail_ == ring_.size()) {
      return absl::ResourceExhaustedError("full");
    }
    ring_[head_++ % ring_.size()] = job;
    return absl::OkStatus();
  }
  Result<std::optional<Completion>> dequeue_copy() override {
    if (is_doomed_) {
      times_->lost = __rdtsc();
      return absl::UnavailableError("halted");
    }
    return tail_ == head_ ? std::nullopt : std::optional(Completion{ring_[tail_++ % ring_.size()], true});
  }
  Result<std::optional<Completion>> peek_copy() override { return std::nullopt; }

 private:
  Times* times_;
  bool is_doomed_;
  std::vector<Job> ring_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

constexpr std::uint32_t kBurst = 16;

void bare(benchmark::State& state) {
  IdleEngine engine(nullptr);
  (void)engine.configure({kBurst, 1});
  std::array<std::byte, 64> memory{};
  const std::array<Move, 1> moves = {{{memory.data(), memory.data() + 32, 16}}};
  std::uint64_t cycles = 0;
  for (auto _ : state) {
    const std::uint64_t begin = __rdtsc();
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      benchmark::DoNotOptimize(engine.enqueue_copy(i, moves));
    }
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      benchmark::DoNotOptimize(engine.dequeue_copy());
    }
    cycles += __rdtsc() - begin;
  }
  state.counters["cycles_per_job"] = static_cast<double>(cycles) / static_cast<double>(state.iterations()) / kBurst;
}
BENCHMARK(bare);

void record(benchmark::State& state) {
  std::vector<AcceleratorPool::Member> members;
  members.push_back({std::make_unique<IdleEngine>(nullptr), -1});
  AcceleratorPool pool(std::move(members), {kBurst, 1});
  Accelerator accelerator(pool, {});
  std::array<std::byte, 64> memory{};
  const std::array<Move, 1> moves = {{{memory.data(), memory.data() + 32, 16}}};
  std::array<Accelerator::Ticket, kBurst> tickets{};
  std::uint64_t cycles = 0;
  for (auto _ : state) {
    const std::uint64_t begin = __rdtsc();
    for (Accelerator::Ticket& ticket : tickets) {
      ticket = accelerator.start(moves);
    }
    accelerator.poll();
    for (const Accelerator::Ticket ticket : tickets) {
      benchmark::DoNotOptimize(accelerator.state(ticket));
      accelerator.forget(ticket);
    }
    cycles += __rdtsc() - begin;
  }
  state.counters["cycles_per_job"] = static_cast<double>(cycles) / static_cast<double>(state.iterations()) / kBurst;
}
BENCHMARK(record);

void change(benchmark::State& state) {
  spdlog::set_level(spdlog::level::off);
  const auto jobs = static_cast<std::uint32_t>(state.range(0));
  std::array<std::byte, 64> memory{};
  const std::array<Move, 1> moves = {{{memory.data(), memory.data() + 32, 16}}};
  std::vector<std::uint64_t> cycles;
  for (auto _ : state) {
    state.PauseTiming();
    Times times;
    std::vector<AcceleratorPool::Member> members;
    members.push_back({std::make_unique<IdleEngine>(&times, true), -1});
    members.push_back({std::make_unique<IdleEngine>(&times), -1});
    AcceleratorPool pool(std::move(members), {jobs, 1});
    Accelerator accelerator(pool, {});
    for (std::uint32_t i = 0; i < jobs; ++i) {
      accelerator.start(moves);
    }
    state.ResumeTiming();
    accelerator.poll();
    state.PauseTiming();
    cycles.push_back(times.accepted - times.lost);
    while (accelerator.in_flight() > 0) {
      accelerator.poll();
    }
    state.ResumeTiming();
  }
  std::ranges::sort(cycles);
  state.counters["cycles_p50"] = static_cast<double>(cycles[cycles.size() / 2]);
  state.counters["cycles_p99"] = static_cast<double>(cycles[cycles.size() * 99 / 100]);
}
BENCHMARK(change)->Arg(10)->Arg(64)->Arg(256)->Arg(1024)->Iterations(500);

}  // namespace
}  // namespace catena::hostcopy
