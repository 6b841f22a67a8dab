// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/launches.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/chains/unit_source.hpp"
#include "io/eal/eal.hpp"

namespace catena::bench {
namespace {

constexpr std::int64_t kUs = 1000;

/// A launch of 1024 packets that begins so many microseconds after the start; each part is `longer` longer than the one
/// before, the first takes 1 us.
void add_launch(trace::SpanLog& log, std::uint32_t number, std::int64_t begin_us, std::int64_t longer_us) {
  std::int64_t at_us = begin_us;
  std::int64_t takes_us = 1;
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    const bool on_host = phase == kFill || phase == kSubmit || phase == kDeliver;
    log.add(
        {kPhases[phase].data(), on_host ? 0U : 1 + number % 2, number, 1024, at_us * kUs, (at_us + takes_us) * kUs});
    at_us += takes_us;
    takes_us += longer_us;
  }
}

TEST(LaunchTimes, are_those_of_whole_launches_after_the_warm_up) {
  trace::SpanLog ids;
  add_launch(ids, 0, 0, 1000);  // warm-up
  add_launch(ids, 1, 5000, 10);
  add_launch(ids, 2, 6000, 20);
  add_launch(ids, 3, 7000, 60);
  ids.add({"fill", 0, 4, 1024, 8000 * kUs, 9000 * kUs});  // the rest of it is not in the trace
  trace::SpanLog rx;
  rx.add({"work", 0, 0, 1024, 0, 10'000 * kUs});
  const std::vector<runtime::StageTrace> stages{{"rx", &rx}, {"ids", &ids}};
  const std::vector<LaunchTimes> all = launch_times(stages);
  ASSERT_EQ(all.size(), 1U) << "rx has no launches";
  EXPECT_EQ(all[0].nf, "ids");
  EXPECT_EQ(all[0].launches, 3U);
  EXPECT_EQ(all[0].packets, 3 * 1024U);
  EXPECT_EQ(all[0].median_us, (PhaseTimes{1, 21, 41, 61, 81, 101}));
  EXPECT_EQ(all[0].total_us, (PhaseTimes{3, 93, 183, 273, 363, 453}));
  EXPECT_TRUE(launch_times({}).empty());
}

class UnitSource : public ::testing::Test {
 protected:
  static std::unique_ptr<io::Source> replay() { return *io::make_replay({}); }

  /// A unit that the source may have filled.
  memory::Unit* next(io::Source& source) {
    memory::Unit* unit = pool_->acquire_unit();
    bool starved = false;
    EXPECT_TRUE(source.receive(*pool_, *unit, next_index_, starved).ok());
    EXPECT_FALSE(starved);
    return unit;
  }
  void release(memory::Unit* unit) {
    pool_->release_slots(*unit, 0, unit->count);
    pool_->release_unit(unit);
  }
  void SetUp() override {
    ASSERT_TRUE(eal::start().ok());
    auto pool = memory::PacketPool::create(2048);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  std::shared_ptr<memory::PacketPool> pool_;
  std::uint64_t next_index_ = 0;
};

TEST_F(UnitSource, brings_one_unit_at_a_time) {
  const std::unique_ptr<io::Source> source = make_one_at_a_time(replay());
  memory::Unit* first = next(*source);
  EXPECT_EQ(first->count, pool_->unit_packets());
  memory::Unit* none = next(*source);
  EXPECT_EQ(none->count, 0U) << "the first one is not back yet";
  release(none);
  release(first);
  memory::Unit* second = next(*source);
  EXPECT_EQ(second->count, pool_->unit_packets());
  release(second);
  EXPECT_EQ(source->seen(), 2 * pool_->unit_packets());
}

TEST_F(UnitSource, brings_full_units_at_a_rate) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kPacketsPerSecond = 25'600;  // a unit of 256 takes 10 ms
  const std::unique_ptr<io::Source> source = make_whole_units(replay(), kPacketsPerSecond);
  EXPECT_EQ(source->offered_per_second(), kPacketsPerSecond);
  const Clock::time_point start = Clock::now();
  for (int units = 0; units < 4;) {
    memory::Unit* unit = next(*source);
    EXPECT_TRUE(unit->count == 0 || unit->count == pool_->unit_packets());
    units += unit->count > 0 ? 1 : 0;
    release(unit);
  }
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(30)) << "three waits, the first unit is due at once";
}

}  // namespace
}  // namespace catena::bench
