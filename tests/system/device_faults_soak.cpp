// SPDX-License-Identifier: Apache-2.0
// Faults of devices by chance, for as long as CATENA_SOAK_SECONDS says (60): kind, call, place, chain, transfer method,
// tuning and traffic. The seed is CATENA_SOAK_SEED, else another one each time; it is printed, and every run that
// breaks a promise with it.
#include "system/fault_chains.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

namespace catena::testing {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  template <typename Values>
  auto const& one_of(Values const& values) {
    return values[below(std::size(values))];
  }
  std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_); }

 private:
  std::mt19937_64 random_;
};

FaultRun any_run(Dice& dice, FaultChain const& chain, std::size_t frames) {
  static constexpr std::uint32_t kPools[] = {512, 1024, 4096};
  static constexpr std::uint32_t kUnits[] = {1, 7, 64, 256};
  static constexpr std::uint32_t kFew[] = {1, 2, 3, 8};
  static constexpr std::uint32_t kWorkers[] = {1, 2, 5};
  FaultRun run =
      fault_run(chain, dice.one_of(kFieldMasks), dice.below(static_cast<std::uint64_t>(std::popcount(chain.gpu_mask))),
                dice.one_of(faults()));
  run.fault.nth = 1 + dice.below(12);
  run.armed_after = dice.below(frames / 2);
  run.pool_slots = dice.one_of(kPools);
  run.unit_packets = dice.one_of(kUnits);
  run.units_per_launch = dice.one_of(kFew);
  run.launches_in_flight = 1 + static_cast<std::uint32_t>(dice.below(4));
  run.workers = dice.one_of(kWorkers);
  return run;
}

TEST(Soak, no_promise_is_broken_whatever_fails) {
  constexpr std::uint64_t kDefaultSeconds = 60;
  constexpr std::size_t kFrames = 6000;
  const std::chrono::seconds limit(number_from("CATENA_SOAK_SECONDS", kDefaultSeconds));
  const std::uint64_t seed = number_from("CATENA_SOAK_SEED", std::random_device{}());
  std::cout << "CATENA_SOAK_SEED=" << seed << std::endl;
  Dice dice(seed);
  const auto frames = unique_frames(kFrames, static_cast<std::uint32_t>(seed));
  std::map<std::string, FaultResult> on_cpu;
  const auto end = std::chrono::steady_clock::now() + limit;
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
  for (; std::chrono::steady_clock::now() < end && !HasFailure(); ++runs) {
    FaultChain const& chain = dice.one_of(fault_chains());
    const FaultRun run = any_run(dice, chain, kFrames);
    if (on_cpu.count(chain.name) == 0) {
      on_cpu[chain.name] = run_on_cpu(run, frames).value();
    }
    SCOPED_TRACE(to_string(run));
    const Result<FaultResult> result = run_with_fault(run, frames);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(broken_promise(run, *result, on_cpu[chain.name], kFrames), "") << "run " << runs << ", seed " << seed;
    failed += result->has_failed ? 1 : 0;
  }
  std::cout << runs << " runs, in " << failed << " of them the device failed" << std::endl;
  EXPECT_GT(failed, 0U);
}

}  // namespace
}  // namespace catena::testing
