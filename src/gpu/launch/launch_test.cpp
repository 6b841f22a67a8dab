// SPDX-License-Identifier: Apache-2.0
// What a launch does with packets of any size: earlier NFs may have grown them to the whole of their slots.
#include "gpu/launch/launch.hpp"
#include "gpu/device/testing/shared_device.hpp"

#include "gpu/copy/layout.hpp"
#include "gpu/device/testing/faulty_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

namespace catena::kernel {
namespace {

using device::testing::shared_device;

constexpr std::uint32_t kLaunchSlots = 8;
constexpr std::chrono::seconds kLaunchLimit{60};
constexpr std::uint32_t kGrowth = 48;  // head- and tailroom that the kernel asks for

/// Sums the frame's bytes, writes the byte as many in front of it as the state says, and one byte of its spill area.
constexpr const char* kLaunchSource = R"(
#include <catena/kernel/context.hpp>
CATENA_KERNEL(sum_frames) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const auto frame = packet.frame();
  u32 sum = 0;
  for (u32 i = 0; i < frame.length(); ++i) {
    sum += frame[static_cast<i32>(i)];
  }
  const i32 before = ctx.state<i32>();
  if (before > 0) {
    frame.set(-before, 1);
  }
  packet.spill<u8>().set(0, 7);
  packet.set<packet::kMetaLength>(static_cast<u16>(frame.length()));
  packet.set<packet::kMetaOffset>(packet.get<packet::kMetaOffset>());
  packet.set_result(sum);
}
)";
constexpr EmbeddedFile kLaunchFiles[] = {{"sum_frames.kernel.cpp", kLaunchSource}};

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Slots with frames of some length somewhere in them. Byte i of slot s is 17 * s + i, modulo 256.
struct Pool {
  Pool() : memory(static_cast<std::byte*>(std::aligned_alloc(4096, kLaunchSlots * packet::kSlotBytes))) {
    for (std::uint32_t at = 0; at < kLaunchSlots * packet::kSlotBytes; ++at) {
      memory.get()[at] = std::byte(17 * (at / packet::kSlotBytes) + at);
    }
    offset.fill(packet::kSlotHeadroom);
    length.fill(packet::kMaxFrameBytes);
    std::iota(slots.begin(), slots.end(), 0U);
  }
  packet::Batch batch() { return {reinterpret_cast<std::uint8_t*>(memory.get()), meta, slots}; }
  std::span<std::byte> bytes() { return {memory.get(), kLaunchSlots * packet::kSlotBytes}; }
  std::uint32_t sum(std::uint32_t slot) const {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < length[slot]; ++i) {
      sum += std::to_integer<std::uint32_t>(memory.get()[slot * packet::kSlotBytes + offset[slot] + i]);
    }
    return sum;
  }

  std::unique_ptr<std::byte, Free> memory;
  std::array<std::uint16_t, kLaunchSlots> offset{};
  std::array<std::uint16_t, kLaunchSlots> length{};
  std::array<packet::Layers, kLaunchSlots> layers{};
  std::array<std::uint8_t, kLaunchSlots> verdict{};
  std::array<std::uint16_t, kLaunchSlots> port{};
  std::array<std::uint64_t, kLaunchSlots> index{};
  std::array<std::uint64_t, kLaunchSlots> arrival{};
  std::array<std::uint8_t, kLaunchSlots> rewritten{};
  std::array<std::uint32_t, kLaunchSlots> slots{};
  packet::MetaColumns meta{offset.data(), length.data(), layers.data(),  verdict.data(),
                           port.data(),   index.data(),  arrival.data(), rewritten.data()};
};

enum class Use { kDirect, kStaged, kStrided, kMapped };

KernelSpec sum_frames() {
  KernelSpec spec;
  spec.source = kLaunchFiles;
  spec.name = "sum_frames";
  spec.headroom = spec.tailroom = kGrowth;
  spec.spill_factor = 1;
  return spec;
}

copy::LaunchPlan plan_for(Use use) {
  copy::LaunchPlan plan;
  plan.reads = packet::kFrameFields | packet::fields(packet::kMetaOffset);
  plan.writes = packet::kFrameFields | packet::fields(packet::kMetaOffset, packet::kMetaLength);
  plan.result_bytes = 4;
  if (use != Use::kDirect) {
    const TransferMethod body = use == Use::kStaged    ? TransferMethod::kStaged
                                : use == Use::kStrided ? TransferMethod::kStrided
                                                       : TransferMethod::kGather;
    const packet::FieldSet places = packet::fields(packet::kMetaOffset, packet::kMetaLength, packet::kMetaLayers);
    plan.shared = copy::SharedStep{packet::kFrameFields | places,
                                   packet::kFrameFields | plan.writes,
                                   TransferMethod::kStaged,
                                   TransferMethod::kStaged,
                                   body,
                                   body};
  }
  return plan;
}

class LaunchTest : public ::testing::TestWithParam<std::tuple<std::string_view, Use>> {
 protected:
  void SetUp() override {
    const auto [backend, use] = GetParam();
    const Result<device::Device*> real = shared_device(backend);
    if (!real.ok()) {
      GTEST_SKIP() << backend << ": " << real.status().message();
    }
    device_.emplace(**real);
    shared_ = copy::SharedBuffer::create(*device_, pool_.bytes()).value();
  }

  /// The launch has room for every slot of the pool. `before`: the byte in front of each frame that the kernel writes.
  void make_launch(std::int32_t before = 0, LaunchBounds const& bounds = {kLaunchSlots},
                   KernelSpec spec = sum_frames()) {
    const Groups groups = bounds.max_groups == 0 ? Groups::kAsNeeded : Groups::kAny;
    Result<std::unique_ptr<DeviceNf>> nf =
        DeviceNf::create(*device_, std::move(spec), plan_for(std::get<1>(GetParam())),
                         std::as_bytes(std::span(&before, 1)), shared_.get(), groups);
    ASSERT_TRUE(nf.ok()) << nf.status();
    nf_ = *std::move(nf);
    Result<std::unique_ptr<Launch>> launch = Launch::create(*nf_, bounds, *mover_);
    ASSERT_TRUE(launch.ok()) << launch.status();
    launch_ = *std::move(launch);
    launch_->begin();
    launch_->add(pool_.batch(), pool_.batch().slots(), {});
  }
  void run() {
    ASSERT_NE(launch_, nullptr);
    ASSERT_EQ(launch_->submit(), absl::OkStatus());
    ASSERT_EQ(launch_->wait(kLaunchLimit, "the test"), absl::OkStatus());
  }
  void apply() {
    const auto until = std::chrono::steady_clock::now() + kLaunchLimit;
    while (!launch_->apply()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
    }
  }
  std::uint32_t result(std::uint32_t row) const {
    std::uint32_t value = 0;
    std::memcpy(&value, launch_->results().data() + row * sizeof value, sizeof value);
    return value;
  }

  Pool pool_;
  std::optional<device::testing::FaultyDevice> device_;
  std::unique_ptr<copy::SharedBuffer> shared_;
  std::unique_ptr<DeviceNf> nf_;
  std::unique_ptr<Launch> launch_;
  std::unique_ptr<hostcopy::HostMover> mover_ = std::make_unique<hostcopy::HostMover>();
};

TEST_P(LaunchTest, has_room_for_frames_that_fill_their_slots) {
  pool_.offset.fill(0);
  pool_.length.fill(packet::kSlotBytes);
  make_launch();
  run();
  EXPECT_EQ(launch_->faults().count, 0U);
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    EXPECT_EQ(result(row), pool_.sum(row)) << row;
  }
}

TEST_P(LaunchTest, takes_frames_with_less_room_around_them_than_the_kernel_may_use) {
  pool_.offset = {0, 1, 40, kGrowth - 1, kGrowth, 2000, 1700, 300};
  pool_.length = {60, 60, 1514, 60, 60, 48, 348, 1748 - kGrowth + 1};
  const std::vector<std::byte> before(pool_.bytes().begin(), pool_.bytes().end());
  make_launch();
  run();
  EXPECT_EQ(launch_->faults().count, 0U);
  apply();
  EXPECT_EQ(launch_->faults().count, 0U);
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    EXPECT_EQ(result(row), pool_.sum(row)) << row;
    const auto frame = pool_.bytes().subspan(row * packet::kSlotBytes + pool_.offset[row], pool_.length[row]);
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), before.begin() + (frame.data() - pool_.memory.get()))) << row;
  }
}

TEST_P(LaunchTest, a_kernel_that_grows_a_frame_beyond_the_front_of_its_slot_is_stopped) {
  const bool is_direct = std::get<1>(GetParam()) == Use::kDirect;
  pool_.offset = {16, 15, 14, 0, 128, 17, 16, 48};
  pool_.length.fill(100);
  make_launch(16);  // writes the byte 16 in front of each frame
  run();
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    // a launch's own buffer has the space; that nothing of it lands in another slot, apply() sees to
    EXPECT_EQ(launch_->faulted(row), !is_direct && pool_.offset[row] < 16) << row;
  }
  apply();
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    EXPECT_EQ(pool_.memory.get()[row * packet::kSlotBytes + packet::kSlotBytes - 1],
              std::byte(17 * row + packet::kSlotBytes - 1))
        << "the end of slot " << row << ", in front of the next";
  }
}

TEST_P(LaunchTest, any_number_of_work_groups_does_all_packets) {
  KernelSpec spec = sum_frames();
  spec.group_size = 2;  // the packets need four groups
  for (const std::uint32_t groups : {1U, 3U, 4U, 5U}) {
    make_launch(0, {.max_packets = kLaunchSlots, .max_groups = groups}, spec);
    run();
    EXPECT_EQ(launch_->faults().count, 0U);
    apply();
    for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
      EXPECT_EQ(result(row), pool_.sum(row)) << "row " << row << " by " << groups << " groups";
    }
  }
}

TEST_P(LaunchTest, fewer_work_groups_are_refused_of_a_kernel_that_was_not_made_for_them) {
  make_launch();
  EXPECT_TRUE(
      absl::IsInvalidArgument(Launch::create(*nf_, {.max_packets = kLaunchSlots, .max_groups = 1}, *mover_).status()));
}

TEST_P(LaunchTest, kernels_take_their_turn_whatever_their_order) {
  device::StreamSerializer serializer;
  make_launch(0, {.max_packets = kLaunchSlots, .serializer = &serializer});
  auto other = Launch::create(*nf_, {.max_packets = kLaunchSlots, .serializer = &serializer}, *mover_);
  ASSERT_TRUE(other.ok()) << other.status();
  run();
  apply();
  (*other)->begin();
  (*other)->add(pool_.batch(), pool_.batch().slots(), {});
  const std::uint64_t waits = device_->calls(device::testing::Call::kWaitFor);
  ASSERT_EQ((*other)->submit(), absl::OkStatus());
  EXPECT_EQ(device_->calls(device::testing::Call::kWaitFor), waits + 1) << "for the kernel that had its turn before";
  ASSERT_EQ((*other)->wait(kLaunchLimit, "the other"), absl::OkStatus());
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    EXPECT_EQ(result(row), pool_.sum(row)) << row;
    std::uint32_t value = 0;
    std::memcpy(&value, (*other)->results().data() + row * sizeof value, sizeof value);
    EXPECT_EQ(value, pool_.sum(row)) << row;
  }
}

TEST_P(LaunchTest, refuses_what_it_has_no_room_for_before_it_writes_anything) {
  if (std::get<1>(GetParam()) != Use::kDirect) {
    GTEST_SKIP() << "in a shared step a packet may fill its slot at most, whatever its length";
  }
  make_launch();
  pool_.length.fill(3 * packet::kSlotBytes);  // wrong metadata, and more than all slots together
  const std::uint64_t copies = device_->calls(device::testing::Call::kCopyToDevice);
  EXPECT_EQ(launch_->submit().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->calls(device::testing::Call::kCopyToDevice), copies);
}

TEST_P(LaunchTest, times_the_kernel_alone_over_the_packets_that_are_there) {
  make_launch();
  EXPECT_TRUE(absl::IsFailedPrecondition(launch_->time_kernel(nullptr, 1, kLaunchLimit).status()))
      << "nothing is there";
  run();
  std::vector<std::unique_ptr<device::Partition>> parts;
  if (auto divided = device_->divide(std::array{1U}); divided.ok()) {
    parts = *std::move(divided);
  }
  parts.push_back(nullptr);  // all of the device
  for (auto const& part : parts) {
    const std::uint64_t enqueued = device_->calls(device::testing::Call::kEnqueue);
    const auto times = launch_->time_kernel(part.get(), 3, kLaunchLimit);
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_EQ(times->size(), 3U);
    EXPECT_EQ(device_->calls(device::testing::Call::kEnqueue), enqueued + 3);
    for (const double ns : *times) {
      EXPECT_GT(ns, 0);
      EXPECT_LT(ns, std::chrono::nanoseconds(kLaunchLimit).count());
    }
  }
  apply();
  EXPECT_EQ(launch_->faults().count, 0U);
  for (std::uint32_t row = 0; row < kLaunchSlots; ++row) {
    EXPECT_EQ(result(row), pool_.sum(row)) << "the batch is what it was";
  }
  const Status failure = absl::UnavailableError("the device fell off the bus");
  device_->fail(device::testing::Call::kReady, 1, failure);
  EXPECT_EQ(launch_->time_kernel(nullptr, 1, kLaunchLimit).status(), failure);
}

TEST_P(LaunchTest, memory_stays_until_its_stream_has_ended) {
  for (packet::Layers& layers : pool_.layers) {
    layers.payload_length = 1;  // a shared step's spill area has as much as the payload
  }
  make_launch();
  run();
  ASSERT_EQ(launch_->fetch_spill(0, 1), absl::OkStatus());
  ASSERT_EQ(launch_->wait(kLaunchLimit, "the test"), absl::OkStatus());
  ASSERT_EQ(launch_->spill(0)[0], std::byte{7});
  launch_.reset();
  EXPECT_EQ(device_->early_frees(), 0U);
}

std::string launch_name(::testing::TestParamInfo<std::tuple<std::string_view, Use>> const& test) {
  constexpr const char* kNames[] = {"direct", "staged", "strided", "mapped"};
  return std::string(std::get<0>(test.param)) + "_" + kNames[static_cast<int>(std::get<1>(test.param))];
}
INSTANTIATE_TEST_SUITE_P(backends, LaunchTest,
                         ::testing::Combine(::testing::ValuesIn(device::backend_names()),
                                            ::testing::Values(Use::kDirect, Use::kStaged, Use::kStrided, Use::kMapped)),
                         launch_name);

}  // namespace
}  // namespace catena::kernel
