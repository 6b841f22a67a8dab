// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stage.hpp"
#include "pipeline/host_stages.hpp"

#include "base/core/keep.hpp"
#include "base/hostcopy/testing/faulty_engine.hpp"
#include "base/sched/workers.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "io/eal/eal.hpp"
#include "nf/testing/marker.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <thread>

namespace catena::runtime {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using packet::testing::Frame;
using ::testing::HasSubstr;

/// Delivers frames in units of `unit` packets, `loops` times over.
class VectorSource final : public io::Source {
 public:
  VectorSource(std::vector<Frame> const& frames, std::uint32_t unit, std::uint64_t loops, std::uint64_t fails_at,
               std::uint64_t fallback_from, std::uint64_t stale_before)
      : frames_(&frames),
        unit_(unit),
        total_(frames.size() * loops),
        fails_at_(fails_at),
        fallback_from_(fallback_from),
        stale_before_(stale_before) {}

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_, total_ - next_));
    if (!pool.acquire_slots(unit, count)) {
      starved = true;
      return absl::OkStatus();
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      Frame const& frame = (*frames_)[(next_ + i) % frames_->size()];
      std::copy(frame.begin(), frame.end(), pool.slot(unit.slots()[i]) + packet::kSlotHeadroom);
      pool.set_arrived(unit.slots()[i], static_cast<std::uint32_t>(frame.size()), next_index++, 0);
    }
    unit.count = count;
    unit.host_fallback = next_ >= fallback_from_;
    unit.device_epoch = next_ < stale_before_ ? DeviceUse().epoch() : 0;
    next_ += count;
    return next_ >= fails_at_ ? absl::DataLossError("the capture is damaged here") : absl::OkStatus();
  }
  bool finished() const override { return next_ == total_; }
  io::SourceCounts counts() const override { return {next_, {}}; }
  std::string describe() const override { return "vector"; }

 private:
  std::vector<Frame> const* frames_;
  std::uint32_t unit_;
  std::uint64_t total_;
  std::uint64_t fails_at_;
  std::uint64_t fallback_from_;
  std::uint64_t stale_before_;
  std::uint64_t next_ = 0;
};

struct SentPacket {
  std::uint64_t index;
  Frame frame;
  bool operator==(SentPacket const&) const = default;
};

/// Keeps what is sent; fails at packet `fail_at`.
class VectorSink final : public io::Sink {
 public:
  explicit VectorSink(std::uint64_t fail_at = UINT64_MAX) : fail_at_(fail_at) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        sent_.push_back({batch[i].index(), {batch[i].frame(), batch[i].frame() + batch[i].length()}});
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return sent_.size() > fail_at_ ? absl::DataLossError("disk full") : absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_.size(), {}}; }
  std::string describe() const override { return "vector"; }
  std::vector<SentPacket> const& frames() const { return sent_; }

 private:
  std::uint64_t fail_at_;
  std::vector<SentPacket> sent_;
};

/// A step on the shared buffer with everything by one route; where the pool is not mapped, tests of kMapped are
/// skipped.
struct Shared {
  TransferMethod route;
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
  std::uint64_t fallback_from = UINT64_MAX;  ///< packet from which on units come as from a stage that left the device
  std::uint64_t stale_before = 0;            ///< packet up to which units come as from a device that there was before
  std::uint64_t stop_after_packets = UINT64_MAX;
  bool moves_on = false;                         ///< the stage gets other parts of its device all the time
  std::function<void()> before_packets = [] {};  ///< called when everything is set up
};

struct Outcome {
  Status status;
  std::uint32_t moves = 0;  ///< that the stage made, where it moves on
  std::vector<SentPacket> sent;
  Status rx_error;
  bool is_stopped = false;
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;
  Status device_status;
  bool abandoned = false;
  std::uint32_t free_slots = 0;
  std::uint32_t quarantined_slots = 0;
  std::uint32_t free_units = 0;
  std::uint32_t all_units = 0;
  nf::Counters counters;
  std::uint64_t device_failed = 0;  ///< packets dropped for it
};

copy::SharedStep step_for(Shared const& shared) {
  using packet::fields;
  constexpr packet::FieldSet kPlaces = fields(packet::kMetaOffset, packet::kMetaLength, packet::kMetaLayers);
  copy::SharedStep step;
  step.to_device = fields(packet::kIpv4Ttl, packet::kL4Dport, packet::kPayload) | kPlaces;
  step.to_host = fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload);
  if (shared.frames) {
    step.to_device |= packet::kFrameFields;
    step.to_host |= packet::kFrameFields;
  }
  // passthrough packets are brought back with what they had
  step.to_device |= fields(packet::kMetaPort);
  step.columns_in = step.columns_out = step.body_in = step.body_out = shared.route;
  return step;
}

/// rx -> marker -> tx over `frames`.
Outcome run(std::vector<Frame> const& frames, Scenario const& setup) {
  EXPECT_TRUE(eal::start().ok());
  Outcome outcome;
  const std::shared_ptr<memory::PacketPool> pool = memory::PacketPool::create(setup.pool_slots).value();
  outcome.all_units = pool->free_units();
  VectorSource source(frames, setup.unit, setup.loops, setup.source_fails_at, setup.fallback_from, setup.stale_before);
  VectorSink sink(setup.sink_fails_at);
  const nf::Descriptor descriptor = nf::testing::marker_descriptor();
  nf::Instance instance("mark", descriptor, nf::testing::make_marker(), nf::OnUnsupported::kPass, false);
  std::atomic<bool> stop{false};
  memory::UnitQueue in(pool->arena(), 0);
  memory::UnitQueue out(pool->arena(), 1);
  RxStage rx(source, *pool, in, stop);
  TxStage tx(sink, *pool, out);
  std::unique_ptr<copy::SharedBuffer> shared;
  std::unique_ptr<kernel::DeviceNf> device_nf;
  std::unique_ptr<PacketStage> middle;
  DeviceStage* device_stage = nullptr;
  if (setup.device != nullptr) {
    const nf::KernelSide side = instance.nf().kernel_side().value();
    std::optional<copy::SharedStep> step;
    if (setup.shared) {
      step = step_for(*setup.shared);
      shared = copy::SharedBuffer::create(*setup.device, pool->arena().slot_bytes(), pool).value();
    }
    device_nf = kernel::DeviceNf::create(*setup.device, side.spec, instance.launch_plan(step), side.state, shared.get(),
                                         setup.moves_on ? kernel::Groups::kAny : kernel::Groups::kAsNeeded)
                    .value();
    auto stage = DeviceStage::create(instance, 0, *device_nf, *pool, in, out, setup.options).value();
    device_stage = stage.get();
    middle = std::move(stage);
  } else {
    middle = std::make_unique<CpuStage>(instance, 0, *pool, in, out);
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
  std::atomic<bool> has_ended{false};
  std::thread mover;
  if (setup.moves_on) {
    mover = std::thread([&] {
      DeviceUse& use = *setup.options.use;
      while (!has_ended) {
        const std::uint32_t part = outcome.moves % 3 + 1;
        auto next = device_stage->attach(*device_nf, setup.options.only_on_device, use,
                                         {.max_packets = part * setup.unit, .max_groups = part});
        ASSERT_TRUE(next.ok()) << next.status();
        device_stage->bind(*std::move(next));
        while (!device_stage->has_taken_binding() && !has_ended) {
          std::this_thread::yield();
        }
        outcome.moves += device_stage->has_taken_binding() ? 1U : 0U;
        device_stage->unbind().reset();
      }
    });
  }
  outcome.status = sched::run_stages({&rx, middle.get(), &tx}, setup.workers);
  has_ended = true;
  if (mover.joinable()) {
    mover.join();
  }
  if (stopper.joinable()) {
    stopper.join();
  }
  outcome.sent = sink.frames();
  outcome.rx_error = rx.error();
  outcome.is_stopped = stop;
  outcome.received = rx.packets();
  if (device_stage != nullptr) {
    outcome.device_status = device_stage->device_status();
    outcome.abandoned = device_stage->abandoned();
  }
  outcome.free_slots = pool->free_slots();
  outcome.quarantined_slots = pool->quarantined_slots();
  outcome.free_units = pool->free_units();
  outcome.counters = instance.counters();
  for (auto const& [reason, count] : instance.drops()) {
    outcome.device_failed += reason == "device_failed" ? count : 0;
    outcome.dropped += count;
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
/// A device that may be written to, and may write, after the run: it lives until the process ends.
FaultyDevice* lasting_device() {
  auto device = std::make_unique<FaultyDevice>(device_here());
  FaultyDevice* const kept = device.get();
  keep_until_exit(std::move(device));
  return kept;
}

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

TEST(Stages, a_copy_engine_may_be_late_refuse_or_fail) {
  const std::optional<Shared> staged = Shared{TransferMethod::kStaged, true};
  for (std::optional<Shared> const& shared : {std::optional<Shared>(), staged}) {
    hostcopy::testing::FaultyEngineScript late;
    hostcopy::testing::FaultyEngineScript small{.max_jobs = 1};
    hostcopy::testing::FaultyEngineScript failing{.fails_after = 7};
    hostcopy::testing::FaultyEngineScript stuck{.stuck_after = 0};
    for (hostcopy::testing::FaultyEngineScript* script : {&late, &small, &failing, &stuck}) {
      Scenario setup{.device = &device_here(), .shared = shared, .unit = 64};
      setup.options.units_per_launch = 2;
      setup.options.open_engine = [script] { return std::make_unique<hostcopy::testing::FaultyEngine>(*script); };
      if (script == &stuck) {
        setup.options.limit = std::chrono::seconds(4);  // half of it for the engine
      }
      const Outcome actual = run(frames(), setup);
      expect_same_and_nothing_lost(actual);
      EXPECT_EQ(actual.device_status, absl::OkStatus()) << "it is not the device's fault";
      EXPECT_GT(script->submitted, 0U);
    }
    // four launches have room for all packets; each moves into staging and out of it
    EXPECT_GE(late.done, 8U);
    EXPECT_EQ(late.refused, 0U);
    EXPECT_EQ(failing.done, 7U);
  }
}

TEST(Stages, workers_do_not_change_the_output) {
  for (const std::uint32_t workers : {2U, 3U, 9U}) {
    expect_same_and_nothing_lost(run(frames(), {.device = &device_here(), .workers = workers}));
  }
}

TEST(Stages, a_trace_has_every_launch_with_its_times_in_order) {
  trace::SpanLog log;
  Scenario setup{.device = &device_here(), .unit = 64};
  setup.options.units_per_launch = 2;
  setup.options.trace = &log;
  expect_same_and_nothing_lost(run(frames(), setup));
  ASSERT_EQ(log.status(), absl::OkStatus());
  std::map<std::uint32_t, std::map<std::string, trace::Span>> launches;
  for (trace::Span const& span : log.spans()) {
    EXPECT_LE(span.begin_ns, span.end_ns) << span.what;
    EXPECT_TRUE(launches[span.number].emplace(span.what, span).second) << span.what << " twice";
  }
  std::uint64_t packets = 0;
  std::uint64_t on_device = 0;
  std::int64_t last_ns = 0;
  for (auto const& [number, spans] : launches) {
    trace::Span const& fill = spans.at("fill");
    trace::Span const& submit = spans.at("submit");
    trace::Span const& deliver = spans.at("deliver");
    packets += fill.packets;
    EXPECT_LE(last_ns, fill.begin_ns);
    EXPECT_EQ(fill.end_ns, submit.begin_ns);
    EXPECT_LE(submit.end_ns, deliver.begin_ns);
    last_ns = submit.end_ns;
    if (spans.size() > 3) {
      ++on_device;
      trace::Span const& kernel = spans.at("kernel");
      EXPECT_GE(kernel.track, 1U);
      EXPECT_LE(kernel.track, setup.options.in_flight);
      EXPECT_EQ(spans.at("to device").end_ns, kernel.begin_ns);
      EXPECT_LT(kernel.begin_ns, kernel.end_ns);
      EXPECT_EQ(kernel.end_ns, spans.at("to host").begin_ns);
      // the clocks are set beside each other to some microseconds; a tenth of a second is another clock, or unit
      constexpr std::int64_t kSlackNs = 100'000'000;
      EXPECT_GT(spans.at("to device").begin_ns, submit.begin_ns - kSlackNs);
      EXPECT_LT(spans.at("to host").end_ns, deliver.end_ns + kSlackNs);
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

class SharedStepTest : public ::testing::TestWithParam<std::tuple<TransferMethod, bool>> {
 protected:
  void SetUp() override {
    constexpr std::size_t kPageBytes = 4096;
    alignas(kPageBytes) static std::array<std::byte, kPageBytes> memory;
    if (std::get<0>(GetParam()) == TransferMethod::kGather &&
        !device_here().map_host(std::span<std::byte>(memory)).ok()) {
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

/// Frames that a pool of 512 or 1,024 slots must hold one after another, and what the CPU makes of them.
std::vector<Frame> const& many_frames() {
  static const std::vector<Frame> kFrames = nf::testing::marker_frames(6000);
  return kFrames;
}
Outcome const& many_on_cpu() {
  static const Outcome kOutcome = run(many_frames(), {});
  return kOutcome;
}

/// Nothing is wrong, sent twice or missing without a count, whether the run came to its end or the device keeps so many
/// slots that it could not.
void expect_nothing_wrong(Outcome const& actual, std::uint32_t pool_slots) {
  std::map<std::uint64_t, Frame const*> expected;
  for (SentPacket const& sent : many_on_cpu().sent) {
    expected[sent.index] = &sent.frame;
  }
  std::uint64_t wrong = 0;
  std::uint64_t next = 0;
  std::uint64_t out_of_order = 0;
  for (SentPacket const& sent : actual.sent) {
    const auto found = expected.find(sent.index);
    wrong += found == expected.end() || *found->second != sent.frame ? 1 : 0;
    out_of_order += sent.index < next ? 1 : 0;
    next = sent.index + 1;
  }
  EXPECT_EQ(wrong, 0U) << "of " << actual.sent.size() << " frames";
  EXPECT_EQ(out_of_order, 0U) << "or sent twice";
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_EQ(actual.sent.size() + actual.dropped, actual.received);
  EXPECT_EQ(actual.free_slots + actual.quarantined_slots, pool_slots) << "a slot leaked";
  if (actual.rx_error.ok()) {
    EXPECT_EQ(actual.received, many_frames().size());
    EXPECT_EQ(actual.sent.size() + actual.device_failed, many_on_cpu().sent.size());
  } else {
    EXPECT_TRUE(absl::IsResourceExhausted(actual.rx_error)) << actual.rx_error;
    EXPECT_GT(actual.quarantined_slots, 0U);
  }
}

TEST_P(SharedStepTest, a_device_that_fails_costs_at_most_what_it_had_in_flight) {
  constexpr std::uint32_t kPool = 512;
  constexpr std::uint64_t kFifth = 5;
  std::vector<Call> calls{Call::kRecord, Call::kReady};
  {
    FaultyDevice sound(device_here());
    run(many_frames(), {.device = &sound, .shared = shared(), .unit = 32, .pool_slots = kPool});
    // which of the others there are depends on the route
    for (const Call call : {Call::kCopyToDevice, Call::kCopyToHost, Call::kCopyRowsToDevice, Call::kCopyRowsToHost,
                            Call::kLaunch, Call::kEnqueue}) {
      if (sound.calls(call) >= 4 * kFifth) {
        calls.push_back(call);
      }
    }
  }
  for (const Call call : calls) {
    for (const bool is_lost : {false, true}) {
      SCOPED_TRACE(concat("call ", static_cast<int>(call), is_lost ? ", lost" : ", once"));
      auto* const faulty = lasting_device();
      Scenario setup{.device = faulty, .shared = shared(), .unit = 32, .pool_slots = kPool};
      setup.options.units_per_launch = 1;
      const Status why = absl::UnavailableError("the device fell off the bus");
      setup.before_packets = [&] { is_lost ? faulty->lose(call, kFifth, why) : faulty->fail(call, kFifth, why); };
      const Outcome actual = run(many_frames(), setup);
      EXPECT_FALSE(actual.device_status.ok());
      expect_nothing_wrong(actual, kPool);
      // a launch has room for full units, and takes as many short ones as fit
      constexpr std::uint32_t kLaunch = memory::kDefaultUnitPackets;
      const bool may_be_lost = shared().route != TransferMethod::kStaged;
      EXPECT_LE(actual.device_failed, may_be_lost ? (is_lost ? setup.options.in_flight : 1) * kLaunch : 0);
      EXPECT_LE(actual.quarantined_slots, may_be_lost && is_lost ? kPool : 0U) << "the device came to rest";
    }
  }
}

TEST_P(SharedStepTest, units_that_left_the_device_before_go_on_without_it_and_others_are_lost_with_it) {
  constexpr std::uint64_t kHalf = 3000;
  auto* const faulty = lasting_device();
  Scenario setup{.device = faulty, .shared = shared(), .unit = 30, .pool_slots = 2048};
  setup.options.units_per_launch = 1;
  setup.options.only_on_device = packet::fields(packet::kIpv4Ttl);
  setup.fallback_from = kHalf;
  setup.before_packets = [&] { faulty->lose(Call::kReady, 1, absl::UnavailableError("fell off the bus")); };
  const Outcome actual = run(many_frames(), setup);
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_EQ(actual.sent.size() + actual.dropped, actual.received);
  const auto late = [](SentPacket const& sent) { return sent.index >= kHalf; };
  EXPECT_TRUE(std::all_of(actual.sent.begin(), actual.sent.end(), late)) << "with bytes that only the device had";
  if (actual.rx_error.ok()) {  // else the device keeps the pool
    EXPECT_EQ(static_cast<std::ptrdiff_t>(actual.sent.size()),
              std::count_if(many_on_cpu().sent.begin(), many_on_cpu().sent.end(), late));
  }
}

TEST_P(SharedStepTest, what_units_left_on_a_device_that_is_lost_is_not_taken_from_the_next_one) {
  constexpr std::uint64_t kHalf = 3000;
  Scenario setup{.device = &device_here(), .shared = shared(), .unit = 30};
  setup.stale_before = kHalf;
  for (const bool is_needed : {false, true}) {
    setup.options.only_on_device = is_needed ? packet::fields(packet::kIpv4Ttl) : 0;
    const Outcome actual = run(many_frames(), setup);
    EXPECT_TRUE(actual.status.ok()) << actual.status;
    EXPECT_EQ(actual.sent.size() + actual.dropped, actual.received);
    if (!is_needed) {
      EXPECT_TRUE(actual.sent == many_on_cpu().sent);
      continue;
    }
    EXPECT_EQ(actual.device_failed, kHalf);
    const auto late = [](SentPacket const& sent) { return sent.index >= kHalf; };
    EXPECT_TRUE(std::all_of(actual.sent.begin(), actual.sent.end(), late)) << "with bytes of another device";
    EXPECT_EQ(static_cast<std::ptrdiff_t>(actual.sent.size()),
              std::count_if(many_on_cpu().sent.begin(), many_on_cpu().sent.end(), late));
  }
}

TEST_P(SharedStepTest, slots_that_a_hanging_device_may_write_are_not_used_again) {
  constexpr std::uint32_t kPool = 2048;
  auto* const faulty = lasting_device();
  Scenario setup{.device = faulty, .shared = shared(), .unit = 32, .pool_slots = kPool};
  setup.options.limit = std::chrono::milliseconds(50);
  setup.options.units_per_launch = 1;
  setup.before_packets = [faulty] { faulty->hold_events(true); };
  const Outcome actual = run(many_frames(), setup);
  EXPECT_TRUE(actual.abandoned);
  EXPECT_TRUE(actual.rx_error.ok()) << actual.rx_error;
  expect_nothing_wrong(actual, kPool);
  if (shared().route == TransferMethod::kStaged) {
    EXPECT_EQ(actual.quarantined_slots, 0U);
    EXPECT_EQ(actual.device_failed, 0U);
  } else {
    EXPECT_GE(actual.quarantined_slots, actual.device_failed);
    EXPECT_GT(actual.device_failed, 0U);
  }
}

TEST_P(SharedStepTest, a_run_whose_pool_a_hanging_device_keeps_ends_with_a_message) {
  auto* const faulty = lasting_device();
  Scenario setup{.device = faulty, .shared = shared(), .unit = 256, .pool_slots = 512, .workers = 2};
  setup.options.limit = std::chrono::milliseconds(50);
  setup.before_packets = [faulty] { faulty->hold_events(true); };
  const Outcome actual = run(many_frames(), setup);
  expect_nothing_wrong(actual, 512);
  if (shared().route != TransferMethod::kStaged) {
    ASSERT_TRUE(absl::IsResourceExhausted(actual.rx_error)) << actual.rx_error;
    EXPECT_THAT(std::string(actual.rx_error.message()), HasSubstr("512 slots of the packet pool"));
    EXPECT_LT(actual.received, many_frames().size());
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, SharedStepTest,
                         ::testing::Combine(::testing::Values(TransferMethod::kStaged, TransferMethod::kStrided,
                                                              TransferMethod::kGather),
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
  static auto* const kFaulty = lasting_device();
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

TEST(Run, a_stage_moves_to_other_parts_of_its_device_and_loses_and_reorders_nothing) {
  DeviceUse use;
  Scenario setup{.device = &device_here(), .unit = 32, .workers = 2, .loops = UINT64_MAX / 4096};
  setup.options.use = &use;
  setup.moves_on = true;
  setup.stop_after_packets = 200'000;
  const Outcome actual = run(frames(), setup);
  EXPECT_TRUE(actual.status.ok()) << actual.status;
  EXPECT_TRUE(actual.device_status.ok()) << actual.device_status;
  EXPECT_GE(actual.moves, 3U);
  EXPECT_EQ(actual.sent.size() + actual.dropped, actual.received);
  EXPECT_EQ(actual.device_failed, 0U);
  EXPECT_EQ(actual.free_slots, 4096U);
  EXPECT_EQ(actual.free_units, actual.all_units);
  EXPECT_TRUE(std::is_sorted(actual.sent.begin(), actual.sent.end(),
                             [](SentPacket const& a, SentPacket const& b) { return a.index < b.index; }));
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
  EXPECT_TRUE(actual.is_stopped) << "sources of other shards go on for nothing";
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
}  // namespace catena::runtime
