// SPDX-License-Identifier: Apache-2.0
// The clock of live packets, and the ticks that stages give their NFs by it.
#include "pipeline/device_stage.hpp"

#include "pipeline/host_stages.hpp"

#include <catena/nf/testing/harness.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "io/eal/eal.hpp"
#include "nf/testing/marker.hpp"
#include "pipeline/ticker.hpp"

namespace catena::runtime {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;

// the machine's clocks as the tests have them
std::uint64_t wall_now_ns = 0;
std::uint64_t monotonic_now_ns = 0;

io::LiveClock clock_started_at(std::uint64_t wall_ns, std::uint64_t monotonic_ns) {
  wall_now_ns = wall_ns;
  monotonic_now_ns = monotonic_ns;
  return {[] { return wall_now_ns; }, [] { return monotonic_now_ns; }};
}
void let_pass(std::uint64_t ns) {
  wall_now_ns += ns;
  monotonic_now_ns += ns;
}

TEST(LiveClock, goes_on_as_the_monotonic_clock_whatever_becomes_of_the_wall_clock) {
  const io::LiveClock clock = clock_started_at(1'700'000'000 * kSecond, 77 * kSecond);
  EXPECT_EQ(clock.now_ns(), 1'700'000'000 * kSecond);
  let_pass(3 * kSecond);
  wall_now_ns -= kDay;
  EXPECT_EQ(clock.now_ns(), 1'700'000'003 * kSecond) << "a step back of a day";
  wall_now_ns += 2 * kDay;
  EXPECT_EQ(clock.now_ns(), 1'700'000'003 * kSecond) << "a step forward";
}

TEST(LiveClock, works_where_the_wall_clock_is_behind_the_monotonic_one) {
  const io::LiveClock clock = clock_started_at(5, 77 * kSecond);
  let_pass(kSecond);
  EXPECT_EQ(clock.now_ns(), kSecond + 5);
}

TEST(LiveClock, is_the_wall_clock_at_the_start) {
  const auto wall_ns = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = static_cast<std::uint64_t>(wall_ns());
  const std::uint64_t now = io::LiveClock().now_ns();
  EXPECT_LT(now - before, kDay) << "a clock of another epoch is years away";
}

/// Counts packets between prepare() and complete(), and keeps the ticks.
class Ticked final : public nf::Nf {
 public:
  nf::Hints hints() const override { return inner_->hints(); }
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override {
    inner_->prepare(batch, aux, outcome);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      open += batch[i].verdict() != packet::Verdict::kDrop ? 1U : 0U;
    }
  }
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override {
    inner_->compute(batch, aux, results);
  }
  void complete(nf::Completion const& completion) override {
    inner_->complete(completion);
    open -= completion.batch().size();
  }
  Result<nf::KernelSide> kernel_side() const override { return inner_->kernel_side(); }
  void tick(std::uint64_t now_ns) override {
    EXPECT_EQ(open, 0U) << "packets are between prepare() and complete()";
    ticks_ns.push_back(now_ns);
  }

  std::uint64_t open = 0;
  std::vector<std::uint64_t> ticks_ns;

 private:
  std::unique_ptr<nf::Nf> inner_ = nf::testing::make_marker();
};

/// A stage with the NF on the CPU or a device, its rings, and a pool.
class Bench {
 public:
  Bench(device::Device* device, std::optional<io::LiveClock> clock) {
    EXPECT_TRUE(eal::start().ok());
    pool_ = memory::PacketPool::create(2048).value();
    auto nf = std::make_unique<Ticked>();
    nf_ = nf.get();
    instance_ = std::make_unique<nf::Instance>("mark", descriptor_, std::move(nf), nf::OnUnsupported::kPass, false);
    in_.emplace(pool_->arena(), 0);
    out_.emplace(pool_->arena(), 1);
    if (device == nullptr) {
      stage_ = std::make_unique<CpuStage>(*instance_, 0, *pool_, *in_, *out_, clock);
      return;
    }
    const nf::KernelSide side = instance_->nf().kernel_side().value();
    device_nf_ = kernel::DeviceNf::create(*device, side.spec, instance_->launch_plan(), side.state, nullptr).value();
    DeviceStageOptions options;
    options.live_clock = clock;
    stage_ = DeviceStage::create(*instance_, 0, *device_nf_, *pool_, *in_, *out_, options).value();
  }

  Progress poll() {
    const Result<Progress> progress = stage_->poll();
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.value_or(Progress::kFinished);
  }
  void send_unit() {
    const std::vector<packet::testing::Frame> frames = nf::testing::marker_frames(64);
    memory::Unit* unit = pool_->acquire_unit();
    ASSERT_NE(unit, nullptr);
    ASSERT_TRUE(pool_->acquire_slots(*unit, 64));
    for (std::uint32_t i = 0; i < 64; ++i) {
      std::copy(frames[i].begin(), frames[i].end(), pool_->slot(unit->slots()[i]) + packet::kSlotHeadroom);
      pool_->set_arrived(unit->slots()[i], static_cast<std::uint32_t>(frames[i].size()), i, 0);
    }
    unit->count = 64;
    in_->push(unit);
  }
  /// Units that came out since the last call; they are given back.
  std::uint32_t take_units() {
    std::uint32_t units = 0;
    while (memory::Unit* unit = out_->pop()) {
      pool_->release_slots(*unit, 0, unit->count);
      pool_->release_unit(unit);
      ++units;
    }
    return units;
  }
  std::vector<std::uint64_t> const& ticks_ns() const { return nf_->ticks_ns; }

 private:
  nf::Descriptor descriptor_ = nf::testing::marker_descriptor();
  std::unique_ptr<memory::PacketPool> pool_;
  std::optional<memory::UnitQueue> in_;
  std::optional<memory::UnitQueue> out_;
  std::unique_ptr<nf::Instance> instance_;
  Ticked* nf_ = nullptr;
  std::unique_ptr<kernel::DeviceNf> device_nf_;
  std::unique_ptr<PacketStage> stage_;
};

class Ticks : public ::testing::TestWithParam<bool> {
 protected:
  static device::Device* place() { return GetParam() ? nf::testing::devices().front() : nullptr; }
};
INSTANTIATE_TEST_SUITE_P(Places, Ticks, ::testing::Bool(),
                         [](auto const& place) { return place.param ? "device" : "cpu"; });

constexpr auto kEvery = static_cast<std::uint64_t>(kTickEvery.count());

TEST_P(Ticks, a_quiet_live_link_has_ticks_with_the_time_of_its_clock) {
  Bench bench(place(), clock_started_at(1'700'000'000 * kSecond, kSecond));
  const std::uint64_t start = 1'700'000'000 * kSecond;
  for (int polls = 0; polls < 100; ++polls) {
    bench.poll();
  }
  EXPECT_EQ(bench.ticks_ns(), (std::vector<std::uint64_t>{start}));
  let_pass(kEvery - 1);
  bench.poll();
  EXPECT_EQ(bench.ticks_ns().size(), 1U) << "not before its time";
  let_pass(1);
  bench.poll();
  bench.poll();
  let_pass(kDay);
  wall_now_ns = 0;
  bench.poll();
  EXPECT_EQ(bench.ticks_ns(), (std::vector<std::uint64_t>{start, start + kEvery, start + kEvery + kDay}));
}

TEST_P(Ticks, packets_or_not_a_live_link_has_ticks_when_no_packet_is_half_done) {
  Bench bench(place(), clock_started_at(kDay, kDay));
  std::uint32_t under_way = 0;
  for (std::uint32_t sent = 0; sent < 40; ++sent) {
    bench.send_unit();
    ++under_way;
    bench.poll();  // a device may have the unit now
    let_pass(kEvery);
    do {
      bench.poll();
      under_way -= bench.take_units();
    } while (under_way > 4);
  }
  while (under_way > 0) {
    bench.poll();
    under_way -= bench.take_units();
  }
  EXPECT_GT(bench.ticks_ns().size(), 0U);
  const std::size_t before = bench.ticks_ns().size();
  let_pass(kEvery);
  bench.poll();
  EXPECT_EQ(bench.ticks_ns().size(), before + 1);
}

TEST_P(Ticks, without_a_live_clock_there_are_none) {
  Bench bench(place(), std::nullopt);
  for (std::uint32_t sent = 0; sent < 5; ++sent) {
    bench.send_unit();
    while (bench.take_units() == 0) {
      bench.poll();
      let_pass(kDay);
    }
  }
  EXPECT_TRUE(bench.ticks_ns().empty());
}

}  // namespace
}  // namespace catena::runtime
