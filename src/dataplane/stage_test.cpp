// SPDX-License-Identifier: Apache-2.0
#include "dataplane/stage.hpp"

#include "dataplane/eal/eal.hpp"
#include "dataplane/pipeline.hpp"
#include "device/testing/faulty_device.hpp"

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/marker.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <thread>

namespace catena::dataplane {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using nf::testing::Frame;
using ::testing::HasSubstr;

/// Delivers frames in units of `unit` packets, `loops` times over.
class VectorSource final : public Source {
 public:
  VectorSource(std::vector<Frame> const& frames, std::uint32_t unit, std::uint64_t loops, std::uint64_t fails_at)
      : frames_(&frames), unit_(unit), total_(frames.size() * loops), fails_at_(fails_at) {}

  Status receive(PacketPool& pool, Unit& unit, std::uint64_t& next_index, bool& starved) override {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_, total_ - next_));
    if (!pool.acquire_slots(unit, count)) {
      starved = true;
      return absl::OkStatus();
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      Frame const& frame = (*frames_)[(next_ + i) % frames_->size()];
      std::copy(frame.begin(), frame.end(), pool.slot(unit.slots[i]) + packet::kSlotHeadroom);
      pool.set_arrived(unit.slots[i], static_cast<std::uint32_t>(frame.size()), next_index++, 0);
    }
    unit.count = count;
    next_ += count;
    return next_ >= fails_at_ ? absl::DataLossError("the capture is damaged here") : absl::OkStatus();
  }
  bool finished() const override { return next_ == total_; }
  SourceCounts counts() const override { return {next_, {}}; }
  std::string describe() const override { return "vector"; }

 private:
  std::vector<Frame> const* frames_;
  std::uint32_t unit_;
  std::uint64_t total_;
  std::uint64_t fails_at_;
  std::uint64_t next_ = 0;
};

/// Keeps what is sent; fails at packet `fail_at`.
class VectorSink final : public Sink {
 public:
  explicit VectorSink(std::uint64_t fail_at = UINT64_MAX) : fail_at_(fail_at) {}
  Status send(PacketPool& pool, Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        sent_.emplace_back(batch[i].frame(), batch[i].frame() + batch[i].length());
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return sent_.size() > fail_at_ ? absl::DataLossError("disk full") : absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  SinkCounts counts() const override { return {sent_.size(), {}}; }
  std::string describe() const override { return "vector"; }
  std::vector<Frame> const& frames() const { return sent_; }

 private:
  std::uint64_t fail_at_;
  std::vector<Frame> sent_;
};

/// A step on the shared buffer with everything by one route; where the pool is not mapped, tests of kMapped are
/// skipped.
struct Shared {
  kernel::Route route;
  bool frames;  ///< whole frames, not the fields alone
};

struct Scenario {
  device::Device* device = nullptr;  ///< null: on the CPU
  std::optional<Shared> shared = {};
  DeviceStageOptions options = {};
  std::uint32_t unit = 64;
  std::uint32_t pool_slots = 4096;
  std::uint32_t workers = 1;
  std::uint64_t loops = 1;
  std::uint64_t source_fails_at = UINT64_MAX;
  std::uint64_t sink_fails_at = UINT64_MAX;
  std::uint64_t stop_after_packets = UINT64_MAX;
  std::function<void()> before_packets = [] {};  ///< called when everything is set up
};

struct Outcome {
  Status status;
  std::vector<Frame> sent;
  Status rx_error;
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;
  Status device_status;
  bool abandoned = false;
  std::uint32_t free_slots = 0;
  std::uint32_t free_units = 0;
  std::uint32_t all_units = 0;
  nf::Counters counters;
  std::uint64_t device_failed = 0;  ///< packets dropped for it
};

kernel::SharedStep step_for(Shared const& shared) {
  using packet::fields;
  constexpr packet::FieldSet kPlaces = fields(packet::kMetaOffset, packet::kMetaLength, packet::kMetaLayers);
  kernel::SharedStep step;
  step.to_device = fields(packet::kIpv4Ttl, packet::kL4Dport, packet::kPayload) | kPlaces;
  step.to_host = fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload);
  if (shared.frames) {
    step.to_device |= packet::kFrameFields;
    step.to_host |= packet::kFrameFields;
  }
  // undecided packets are brought back with what they had
  step.to_device |= fields(packet::kMetaPort);
  step.columns_in = step.columns_out = step.body_in = step.body_out = shared.route;
  return step;
}

/// rx -> marker -> tx over `frames`.
Outcome run(std::vector<Frame> const& frames, Scenario const& setup) {
  EXPECT_TRUE(ensure_eal().ok());
  Outcome outcome;
  auto pool = PacketPool::create(setup.pool_slots).value();
  outcome.all_units = pool->free_units();
  VectorSource source(frames, setup.unit, setup.loops, setup.source_fails_at);
  VectorSink sink(setup.sink_fails_at);
  const nf::Descriptor descriptor = nf::testing::marker_descriptor();
  nf::Instance instance("mark", descriptor, nf::testing::make_marker(), nf::OnUnsupported::kPass, false);
  std::atomic<bool> stop{false};
  const auto in = Ring::create(outcome.all_units).value();
  const auto out = Ring::create(outcome.all_units).value();
  RxStage rx(source, *pool, *in, stop);
  TxStage tx(sink, *pool, *out, nullptr);
  std::unique_ptr<kernel::SharedBuffer> shared;
  std::unique_ptr<kernel::DeviceNf> device_nf;
  std::unique_ptr<Stage> middle;
  DeviceStage* device_stage = nullptr;
  if (setup.device != nullptr) {
    nf::KernelSide side = instance.nf().kernel_side().value();
    if (setup.shared) {
      side.spec.shared = step_for(*setup.shared);
      shared = kernel::SharedBuffer::create(
                   *setup.device, std::as_writable_bytes(std::span(pool->slot(0), pool->slots() * packet::kSlotBytes)))
                   .value();
    }
    device_nf = kernel::DeviceNf::create(*setup.device, side.spec, side.state, shared.get()).value();
    auto stage = DeviceStage::create(instance, 0, *device_nf, *pool, *in, *out, setup.options).value();
    device_stage = stage.get();
    middle = std::move(stage);
  } else {
    middle = std::make_unique<CpuStage>(instance, 0, *pool, *in, *out);
  }
  setup.before_packets();
  std::thread stopper;
  if (setup.stop_after_packets != UINT64_MAX) {
    stopper = std::thread([&] {
      while (rx.packets() < setup.stop_after_packets) {
        std::this_thread::yield();
      }
      stop = true;
    });
  }
  outcome.status = run_stages({&rx, middle.get(), &tx}, setup.workers);
  if (stopper.joinable()) {
    stopper.join();
  }
  outcome.sent = sink.frames();
  outcome.rx_error = rx.error();
  outcome.received = rx.packets();
  outcome.dropped = tx.dropped();
  if (device_stage != nullptr) {
    outcome.device_status = device_stage->device_status();
    outcome.abandoned = device_stage->abandoned();
  }
  outcome.free_slots = pool->free_slots();
  outcome.free_units = pool->free_units();
  outcome.counters = instance.counters();
  outcome.device_failed = instance.drops().back().second;
  if (outcome.abandoned) {
    // a stage leaves a hanging device its memory
    static_cast<void>(pool.release());
    static_cast<void>(shared.release());
    static_cast<void>(device_nf.release());
  }
  return outcome;
}

std::vector<Frame> const& frames() {
  static const std::vector<Frame> kFrames = nf::testing::marker_frames(2000);
  return kFrames;
}
Outcome const& on_cpu() {
  static const Outcome kOutcome = run(frames(), {});
  return kOutcome;
}
device::Device& device_here() { return *nf::testing::devices().front(); }

void expect_same_and_nothing_lost(Outcome const& actual) {
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_TRUE(actual.sent == on_cpu().sent);
  EXPECT_EQ(actual.sent.size() + actual.dropped, frames().size());
  EXPECT_EQ(actual.free_units, actual.all_units) << "a unit leaked";
  EXPECT_EQ(actual.free_slots, 4096U) << "a slot leaked";
}

TEST(Stages, a_device_gives_the_packets_of_the_cpu_in_order) {
  for (const std::uint32_t unit : {1U, 64U, 256U}) {
    for (const std::uint32_t in_flight : {1U, 3U}) {
      Scenario setup{.device = &device_here(), .unit = unit};
      setup.options.in_flight = in_flight;
      const Outcome actual = run(frames(), setup);
      expect_same_and_nothing_lost(actual);
      EXPECT_GT(actual.counters.device_packets, 0U);
    }
  }
}

TEST(Stages, workers_do_not_change_the_output) {
  for (const std::uint32_t workers : {2U, 3U, 9U}) {
    expect_same_and_nothing_lost(run(frames(), {.device = &device_here(), .workers = workers}));
  }
}

TEST(Stages, a_trace_has_every_launch_with_its_times_in_order) {
  TraceLog trace;
  Scenario setup{.device = &device_here(), .unit = 64};
  setup.options.units_per_launch = 2;
  setup.options.trace = &trace;
  expect_same_and_nothing_lost(run(frames(), setup));
  ASSERT_EQ(trace.status(), absl::OkStatus());
  std::uint64_t packets = 0;
  std::uint64_t on_device = 0;
  std::int64_t last_ns = 0;
  for (LaunchTrace const& launch : trace.launches()) {
    packets += launch.packets;
    EXPECT_LT(launch.lane, setup.options.in_flight);
    EXPECT_LE(last_ns, launch.first_unit_ns);
    EXPECT_LE(launch.first_unit_ns, launch.submit_begin_ns);
    EXPECT_LE(launch.submit_begin_ns, launch.submit_end_ns);
    EXPECT_LE(launch.submit_end_ns, launch.ready_ns);
    EXPECT_LE(launch.ready_ns, launch.delivered_ns);
    last_ns = launch.submit_end_ns;
    if (launch.device) {
      ++on_device;
      EXPECT_LE(launch.device->begin_ns, launch.device->moved_in_ns);
      EXPECT_LT(launch.device->moved_in_ns, launch.device->computed_ns);
      EXPECT_LE(launch.device->computed_ns, launch.device->moved_back_ns);
      // the clocks are set beside each other to some microseconds; a tenth of a second is another clock, or unit
      constexpr std::int64_t kSlackNs = 100'000'000;
      EXPECT_GT(launch.device->begin_ns, launch.submit_begin_ns - kSlackNs);
      EXPECT_LT(launch.device->moved_back_ns, launch.delivered_ns + kSlackNs);
    }
  }
  EXPECT_EQ(packets, frames().size());
  EXPECT_GT(on_device, 0U);
}

TEST(Stages, a_pool_smaller_than_one_launch_does_not_stall) {
  Scenario setup{.device = &device_here(), .unit = 256, .pool_slots = 512};
  setup.options.units_per_launch = 16;
  const Outcome actual = run(frames(), setup);
  EXPECT_TRUE(actual.sent == on_cpu().sent);
  EXPECT_EQ(actual.free_slots, 512U);
}

class SharedStepTest : public ::testing::TestWithParam<std::tuple<kernel::Route, bool>> {
 protected:
  void SetUp() override {
    constexpr std::size_t kPageBytes = 4096;
    alignas(kPageBytes) static std::array<std::byte, kPageBytes> memory;
    if (std::get<0>(GetParam()) == kernel::Route::kMapped && !device_here().map_host(memory).ok()) {
      GTEST_SKIP() << device_here().info().name << " maps no host memory";
    }
  }
  Shared shared() const { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
};

TEST_P(SharedStepTest, gives_the_packets_of_the_cpu_in_order) {
  for (const std::uint32_t unit : {1U, 64U, 256U}) {
    const Outcome actual = run(frames(), {.device = &device_here(), .shared = shared(), .unit = unit});
    expect_same_and_nothing_lost(actual);
    EXPECT_GT(actual.counters.device_packets, 0U);
  }
}

TEST_P(SharedStepTest, a_lost_device_costs_at_most_what_it_had_in_flight) {
  constexpr std::uint64_t kFifth = 5;
  std::vector<Call> calls{Call::kRecord, Call::kReady};
  {
    FaultyDevice sound(device_here());
    run(frames(), {.device = &sound, .shared = shared(), .unit = 32});
    // which of the others there are depends on the route
    for (const Call call : {Call::kCopyToDevice, Call::kCopyToHost, Call::kCopyRowsToDevice, Call::kCopyRowsToHost,
                            Call::kLaunch, Call::kRun}) {
      if (sound.calls(call) >= 4 * kFifth) {
        calls.push_back(call);
      }
    }
  }
  for (const Call call : calls) {
    FaultyDevice faulty(device_here());
    Scenario setup{.device = &faulty, .shared = shared(), .unit = 32};
    setup.options.units_per_launch = 1;
    setup.before_packets = [&] { faulty.lose(call, kFifth, absl::UnavailableError("the device fell off the bus")); };
    const Outcome actual = run(frames(), setup);
    EXPECT_TRUE(actual.status.ok()) << actual.status;
    EXPECT_FALSE(actual.device_status.ok());
    EXPECT_EQ(actual.sent.size() + actual.dropped, frames().size());
    EXPECT_EQ(actual.free_slots, 4096U) << "a slot leaked";
    if (shared().route == kernel::Route::kStaged) {
      EXPECT_TRUE(actual.sent == on_cpu().sent) << "packets in the pool are as they were";
    } else {
      // a launch has room for full units, and takes as many short ones as fit
      EXPECT_LE(actual.device_failed, kDefaultUnitPackets * setup.options.in_flight);
      EXPECT_EQ(actual.sent.size() + actual.device_failed, on_cpu().sent.size());
    }
  }
}

TEST_P(SharedStepTest, a_lost_device_takes_packets_with_it_that_only_it_had) {
  FaultyDevice faulty(device_here());
  Scenario setup{.device = &faulty, .shared = shared(), .unit = 32};
  setup.options.units_per_launch = 1;
  setup.options.host_is_current = false;
  setup.before_packets = [&] { faulty.lose(Call::kRecord, 3, absl::UnavailableError("the device fell off the bus")); };
  const Outcome actual = run(frames(), setup);
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_GT(actual.device_failed, frames().size() / 2);
  EXPECT_EQ(actual.sent.size() + actual.dropped, frames().size());
  EXPECT_EQ(actual.free_slots, 4096U) << "a slot leaked";
}

TEST_P(SharedStepTest, slots_that_a_hanging_device_may_write_are_not_used_again) {
  auto* const faulty = new FaultyDevice(device_here());  // never destroyed, as in DeviceWait
  Scenario setup{.device = faulty, .shared = shared(), .unit = 32};
  setup.options.limit = std::chrono::milliseconds(50);
  setup.before_packets = [faulty] { faulty->hold_events(true); };
  const Outcome actual = run(frames(), setup);
  EXPECT_TRUE(actual.abandoned);
  EXPECT_EQ(actual.sent.size() + actual.dropped, frames().size());
  if (shared().route == kernel::Route::kStaged) {
    EXPECT_EQ(actual.free_slots, 4096U);
    EXPECT_TRUE(actual.sent == on_cpu().sent);
  } else {
    EXPECT_GT(actual.device_failed, 0U);
    EXPECT_LT(actual.free_slots, 4096U);
    EXPECT_EQ(actual.sent.size() + actual.device_failed, on_cpu().sent.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, SharedStepTest,
                         ::testing::Combine(::testing::Values(kernel::Route::kStaged, kernel::Route::kStrided,
                                                              kernel::Route::kMapped),
                                            ::testing::Bool()));

class LostDevice : public ::testing::TestWithParam<std::tuple<Call, std::uint64_t>> {};

TEST_P(LostDevice, its_packets_and_all_later_ones_go_to_the_cpu) {
  FaultyDevice faulty(device_here());
  Scenario setup{.device = &faulty, .unit = 32};
  setup.options.units_per_launch = 1;
  setup.before_packets = [&] {
    const auto [call, nth] = GetParam();
    faulty.lose(call, nth, absl::UnavailableError("the device fell off the bus"));
  };
  const Outcome actual = run(frames(), setup);
  expect_same_and_nothing_lost(actual);
  EXPECT_THAT(actual.device_status.ToString(), HasSubstr("fell off the bus"));
}

INSTANTIATE_TEST_SUITE_P(Calls, LostDevice,
                         ::testing::Combine(::testing::Values(Call::kCopyToDevice, Call::kLaunch, Call::kCopyToHost,
                                                              Call::kRecord, Call::kFlush, Call::kReady),
                                            ::testing::Values(1, 7)));

TEST(DeviceWait, that_exceeds_its_limit_names_stage_and_device_and_ends) {
  // the stage leaves a hanging device its memory, so this one is never destroyed
  static auto* const kFaulty = new FaultyDevice(device_here());
  Scenario setup{.device = kFaulty, .unit = 32};
  setup.options.limit = std::chrono::milliseconds(50);
  setup.before_packets = [] { kFaulty->hold_events(true); };
  const Outcome actual = run(frames(), setup);
  expect_same_and_nothing_lost(actual);
  EXPECT_TRUE(absl::IsDeadlineExceeded(actual.device_status)) << actual.device_status;
  EXPECT_THAT(actual.device_status.ToString(),
              HasSubstr("stage mark waited more than 50 ms for device " + kFaulty->info().name));
  EXPECT_TRUE(actual.abandoned);
}

TEST(Run, stop_ends_an_endless_source_and_finishes_what_is_inside) {
  Scenario setup{.device = &device_here(), .workers = 2, .loops = UINT64_MAX / 4096, .stop_after_packets = 5000};
  const Outcome actual = run(frames(), setup);
  EXPECT_TRUE(actual.status.ok());
  EXPECT_GE(actual.received, 5000U);
  EXPECT_EQ(actual.sent.size() + actual.dropped, actual.received);
  EXPECT_EQ(actual.free_slots, 4096U);
}

TEST(Run, packets_before_a_failure_of_the_source_still_go_through) {
  const Outcome actual = run(frames(), {.device = &device_here(), .workers = 3, .source_fails_at = 640});
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_TRUE(absl::IsDataLoss(actual.rx_error)) << actual.rx_error;
  EXPECT_EQ(actual.received, 640U);
  EXPECT_EQ(actual.sent.size() + actual.dropped, 640U);
  EXPECT_EQ(actual.free_units, actual.all_units);
}

TEST(Run, an_error_of_a_stage_ends_it_and_names_the_stage) {
  const Outcome actual = run(frames(), {.sink_fails_at = 300});
  EXPECT_TRUE(absl::IsDataLoss(actual.status));
  EXPECT_THAT(std::string(actual.status.message()), HasSubstr("stage tx: disk full"));
}

}  // namespace
}  // namespace catena::dataplane
