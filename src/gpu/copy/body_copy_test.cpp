// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/body_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace catena::copy {
namespace {

constexpr std::uint32_t kSlots = 1024;
constexpr std::chrono::seconds kLimit{30};

/// A packet pool and its twin, on the OpenCL device that is everywhere.
class BodyCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = device::open(device::DevicePreference::of("opencl"));
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    pool_ = *device_->allocate_pinned(std::size_t{kSlots} * packet::kSlotBytes);
    twins_ = *device_->allocate(pool_->bytes().size());
    stream_ = *device_->create_stream();
    for (std::size_t i = 0; i < pool_->bytes().size(); ++i) {
      pool_->bytes()[i] = static_cast<std::byte>(i * 131 + i / 2048 * 7);
    }
    ASSERT_TRUE(stream_->fill(*twins_, 0, twins_->size(), 0xA5).ok());
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      offset_[slot] = static_cast<std::uint16_t>(100 + slot % 8);
      length_[slot] = static_cast<std::uint16_t>(60 + slot % 500);
      layers_[slot] = {14,
                       34,
                       42,
                       packet::AddressFamily::kIpv4,
                       packet::kIpv4 | packet::kUdp | packet::kPorts,
                       static_cast<u16>(length_[slot] - 42U)};
    }
  }
  Bodies bodies(std::vector<std::uint32_t> const& slots, std::vector<SlotRun> const& own) {
    return {pool_->bytes(), twins_.get(), &meta_, slots, own};
  }
  void wait() {
    auto event = stream_->record();
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE((*event)->wait(kLimit, "the copies of a test").ok());
  }
  std::vector<std::byte> twin(std::uint32_t slot) {
    std::vector<std::byte> bytes(packet::kSlotBytes);
    EXPECT_TRUE(stream_->copy_to_host(bytes, *twins_, std::size_t{slot} * packet::kSlotBytes).ok());
    wait();
    return bytes;
  }
  std::span<std::byte> original(std::uint32_t slot) {
    return pool_->bytes().subspan(std::size_t{slot} * packet::kSlotBytes, packet::kSlotBytes);
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::PinnedBuffer> pool_;
  std::unique_ptr<device::Buffer> twins_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<std::uint16_t> offset_ = std::vector<std::uint16_t>(kSlots);
  std::vector<std::uint16_t> length_ = std::vector<std::uint16_t>(kSlots);
  std::vector<packet::Layers> layers_ = std::vector<packet::Layers>(kSlots);
  packet::MetaColumns meta_{offset_.data(), length_.data(), layers_.data(), nullptr,
                            nullptr,        nullptr,        nullptr,        nullptr};
};

std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> slots(count);
  std::iota(slots.begin(), slots.end(), first);
  return slots;
}

TEST_F(BodyCopies, strided_moves_the_frames_of_a_run_and_no_slot_beside_it) {
  BodyMover mover(TransferMethod::kStrided, Direction::kToDevice, false, false);
  const std::vector<std::uint32_t> slots = range(10, 20);
  const std::vector<SlotRun> own{{10, 20}};
  const Bodies what = bodies(slots, own);
  std::size_t staging = 1;
  BodyCopy& copy = mover.choose(what, staging);
  ASSERT_EQ(copy.method(), TransferMethod::kStrided);
  EXPECT_EQ(staging, 0U);
  ASSERT_TRUE(copy.enqueue(*stream_).ok());
  wait();
  for (const std::uint32_t slot : slots) {
    const std::vector<std::byte> there = twin(slot);
    EXPECT_TRUE(std::equal(there.begin() + offset_[slot], there.begin() + offset_[slot] + length_[slot],
                           original(slot).begin() + offset_[slot]))
        << slot;
  }
  for (const std::uint32_t beside : {9U, 30U}) {
    const std::vector<std::byte> there = twin(beside);
    EXPECT_EQ(std::count(there.begin(), there.end(), std::byte{0xA5}), packet::kSlotBytes) << beside;
  }
  // 20 rows, each from the first byte of any frame to the last: offsets 100 to 107, ends up to 107 + ... of slot 29
  std::uint32_t end = 0;
  for (const std::uint32_t slot : slots) {
    end = std::max<std::uint32_t>(end, std::uint32_t{offset_[slot]} + length_[slot]);
  }
  EXPECT_EQ(copy.bytes(), 20U * (end - 100));
}

TEST_F(BodyCopies, strided_brings_back_what_frames_may_have_grown_by) {
  BodyMover mover(TransferMethod::kStrided, Direction::kToHost, false, false);
  const std::vector<std::uint32_t> slots = range(0, 5);
  const std::vector<SlotRun> own{{0, 5}};
  Bodies what = bodies(slots, own);
  what.headroom = 48;
  what.tailroom = 32;
  std::size_t staging = 0;
  BodyCopy& copy = mover.choose(what, staging);
  ASSERT_TRUE(copy.enqueue(*stream_).ok());
  wait();
  for (const std::uint32_t slot : slots) {
    const auto host = original(slot);
    for (std::uint32_t at = offset_[slot] - 48U; at < offset_[slot] + length_[slot] + 32U; ++at) {
      ASSERT_EQ(host[at], std::byte{0xA5}) << slot << " " << at;
    }
    EXPECT_NE(host[2000], std::byte{0xA5}) << "nothing beyond the longest frame";
  }
  // offsets 100 to 104 less 48, and the end of slot 4's 64 bytes with 32 more: 52 to 200, in lines of 64
  EXPECT_EQ(copy.bytes(), 5U * 256);
}

TEST_F(BodyCopies, frames_that_a_kernel_brings_back_count_whole_lines) {
  const std::vector<std::uint32_t> slots{4};  // bytes 104 to 168
  const std::vector<SlotRun> own{{4, 1}};
  Bodies what = bodies(slots, own);
  std::size_t staging = 0;
  EXPECT_EQ(BodyMover(TransferMethod::kGather, Direction::kToDevice, false, true).choose(what, staging).bytes(), 64U);
  EXPECT_EQ(BodyMover(TransferMethod::kGather, Direction::kToHost, false, true).choose(what, staging).bytes(), 128U);
  what.payloads = true;
  EXPECT_EQ(BodyMover(TransferMethod::kGather, Direction::kToHost, true, true).choose(what, staging).bytes(),
            64U - 42U);
}

TEST_F(BodyCopies, packets_that_are_gone_leave_no_hole_in_a_run) {
  BodyMover mover(TransferMethod::kStrided, Direction::kToDevice, false, true);
  std::vector<std::uint32_t> slots = range(0, 512);
  std::erase_if(slots, [](std::uint32_t slot) { return slot % 10 == 3; });
  const std::vector<SlotRun> own{{0, 512}};
  const Bodies what = bodies(slots, own);
  std::size_t staging = 0;
  EXPECT_EQ(mover.choose(what, staging).method(), TransferMethod::kStrided);
}

TEST_F(BodyCopies, few_packets_are_left_to_a_kernel_that_can_reach_them) {
  for (const std::uint32_t packets : {kFewPackets, kFewPackets + 1}) {
    const std::vector<std::uint32_t> slots = range(0, packets);
    const std::vector<SlotRun> own{{0, packets}};
    const Bodies what = bodies(slots, own);
    std::size_t staging = 0;
    const auto expect = [&](TransferMethod planned, bool pool_is_mapped, TransferMethod expected) {
      BodyMover mover(planned, Direction::kToDevice, false, pool_is_mapped);
      EXPECT_EQ(mover.choose(what, staging).method(), expected);
      EXPECT_EQ(mover.default_method(packets), expected);
    };
    expect(TransferMethod::kStrided, true, packets <= kFewPackets ? TransferMethod::kGather : TransferMethod::kStrided);
    expect(TransferMethod::kStrided, false, TransferMethod::kStrided);
    expect(TransferMethod::kStaged, true, TransferMethod::kStaged);
  }
}

TEST_F(BodyCopies, scattered_slots_take_another_way) {
  const std::vector<std::uint32_t> scattered{1, 3, 5, 7, 9, 11, 13};
  std::vector<SlotRun> own;
  for (const std::uint32_t slot : scattered) {
    own.push_back({slot, 1});
  }
  std::size_t staging = 0;
  const Bodies what = bodies(scattered, own);
  EXPECT_EQ(BodyMover(TransferMethod::kStrided, Direction::kToDevice, false, true).choose(what, staging).method(),
            TransferMethod::kGather);
  EXPECT_EQ(BodyMover(TransferMethod::kStrided, Direction::kToDevice, false, false).choose(what, staging).method(),
            TransferMethod::kStaged);

  const std::vector<std::uint32_t> few{0, 1, 2};  // of a run that is dropped but for these
  const std::vector<SlotRun> run{{0, 256}};
  EXPECT_EQ(
      BodyMover(TransferMethod::kStrided, Direction::kToDevice, false, true).choose(bodies(few, run), staging).method(),
      TransferMethod::kGather);
}

TEST_F(BodyCopies, strided_carries_no_payloads) {
  const std::vector<std::uint32_t> slots = range(0, 8);
  const std::vector<SlotRun> own{{0, 8}};
  Bodies what = bodies(slots, own);
  what.payloads = true;
  std::size_t staging = 0;
  EXPECT_EQ(BodyMover(TransferMethod::kStrided, Direction::kToDevice, true, true).choose(what, staging).method(),
            TransferMethod::kGather);
}

TEST_F(BodyCopies, staging_holds_each_body_at_its_room) {
  for (const bool payloads : {false, true}) {
    BodyMover mover(TransferMethod::kStaged, Direction::kToDevice, payloads, true);
    const std::vector<std::uint32_t> slots{5, 900, 17};
    const std::vector<SlotRun> own{{5, 1}, {900, 1}, {17, 1}};
    Bodies what = bodies(slots, own);
    what.payloads = payloads;
    std::size_t bytes = 0;
    BodyCopy& copy = mover.choose(what, bytes);
    ASSERT_EQ(copy.method(), TransferMethod::kStaged);
    EXPECT_LE(bytes, mover.max_staging_bytes(3));
    std::vector<std::byte> staging(bytes);
    std::vector<hostcopy::Move> moves;
    copy.moves_in(staging, moves);
    hostcopy::make_moves(moves);
    ASSERT_EQ(copy.staging_extents().size(), 3U);
    for (std::size_t row = 0; row < 3; ++row) {
      StagingExtent const& extent = copy.staging_extents()[row];
      const std::uint32_t skip = payloads ? 42 : 0;
      EXPECT_EQ(extent.begin % 16, extent.slot_begin % 16);
      EXPECT_EQ(extent.slot_begin, offset_[slots[row]] + skip);
      EXPECT_EQ(extent.bytes, length_[slots[row]] - skip);
      EXPECT_EQ(
          std::memcmp(staging.data() + extent.begin, original(slots[row]).data() + extent.slot_begin, extent.bytes), 0);
    }
  }
}

TEST_F(BodyCopies, staging_gives_back_frames_where_the_metadata_has_them) {
  BodyMover mover(TransferMethod::kStaged, Direction::kToHost, false, true);
  const std::vector<std::uint32_t> slots{7};
  const std::vector<SlotRun> own{{7, 1}};
  Bodies what = bodies(slots, own);
  what.headroom = 48;
  what.tailroom = 32;
  std::size_t bytes = 0;
  BodyCopy& copy = mover.choose(what, bytes);
  std::vector<std::byte> staging(bytes, std::byte{0x5A});
  offset_[7] = static_cast<std::uint16_t>(offset_[7] - 36);
  length_[7] = static_cast<std::uint16_t>(length_[7] + 52);
  const std::vector<std::byte> before(original(7).begin(), original(7).end());
  std::vector<hostcopy::Move> moves;
  copy.moves_out(0, staging, moves);
  hostcopy::make_moves(moves);
  for (std::uint32_t at = 0; at < packet::kSlotBytes; ++at) {
    const bool inside = at >= offset_[7] && at < std::uint32_t{offset_[7]} + length_[7];
    ASSERT_EQ(original(7)[at], inside ? std::byte{0x5A} : before[at]) << at;
  }
}

}  // namespace
}  // namespace catena::copy
