// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/rewritten.hpp"
#include "gpu/device/testing/shared_device.hpp"

#include <catena/packet/slot.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

namespace catena::copy {
namespace {

using device::testing::shared_device;

constexpr std::uint32_t kRewrittenSlots = 16;
constexpr std::uint32_t kRewrittenOffset = 128;
constexpr std::uint32_t kPayload = 42;  // in the frame
constexpr std::chrono::seconds kRewrittenLimit{60};

struct FreeRewritten {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Slots of which each byte is the slot's number, and their metadata; payloads are 100 bytes unless a test says else.
struct Pool {
  Pool() : memory(static_cast<std::byte*>(std::aligned_alloc(4096, kRewrittenSlots * packet::kSlotBytes))) {
    for (std::uint32_t slot = 0; slot < kRewrittenSlots; ++slot) {
      std::fill_n(memory.get() + std::size_t{slot} * packet::kSlotBytes, packet::kSlotBytes, std::byte(slot));
    }
    offset.fill(kRewrittenOffset);
    length.fill(kPayload + 100);
    layers.fill({.l3 = 14,
                 .l4 = 34,
                 .payload = kPayload,
                 .family = packet::AddressFamily::kIpv4,
                 .flags = packet::kIpv4,
                 .payload_length = 100});
    std::iota(slots.begin(), slots.end(), 0U);
  }
  std::span<std::byte> bytes() { return {memory.get(), kRewrittenSlots * packet::kSlotBytes}; }
  packet::Batch batch() { return {reinterpret_cast<std::uint8_t*>(memory.get()), meta, slots}; }

  std::unique_ptr<std::byte, FreeRewritten> memory;
  std::array<std::uint16_t, kRewrittenSlots> offset{};
  std::array<std::uint16_t, kRewrittenSlots> length{};
  std::array<packet::Layers, kRewrittenSlots> layers{};
  std::array<std::uint8_t, kRewrittenSlots> verdict{};
  std::array<std::uint16_t, kRewrittenSlots> port{};
  std::array<std::uint64_t, kRewrittenSlots> index{};
  std::array<std::uint64_t, kRewrittenSlots> arrival{};
  std::array<std::uint8_t, kRewrittenSlots> rewritten{};
  std::array<std::uint32_t, kRewrittenSlots> slots{};
  packet::MetaColumns meta{offset.data(), length.data(), layers.data(),  verdict.data(),
                           port.data(),   index.data(),  arrival.data(), rewritten.data()};
};

class RewrittenTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const Result<device::Device*> device = shared_device(GetParam());
    if (!device.ok()) {
      GTEST_SKIP() << GetParam() << ": " << device.status().message();
    }
    shared_ = SharedBuffer::create(**device, pool_.bytes()).value();
    stream_ = (*device)->create_stream().value();
  }

  /// The device's slots after enqueue_rewritten(), which says that it moved `bytes`.
  std::vector<std::byte> after_moving(std::uint64_t bytes) {
    const Result<std::uint64_t> moved = enqueue_rewritten(*stream_, *shared_, pool_.batch());
    EXPECT_TRUE(moved.ok()) << moved.status();
    EXPECT_EQ(moved.value_or(0), bytes);
    std::vector<std::byte> twin(pool_.bytes().size());
    EXPECT_TRUE(stream_->copy_to_host(twin, shared_->buffer(), 0).ok());
    EXPECT_TRUE(stream_->record().value()->wait(kRewrittenLimit, "the copy back").ok());
    return twin;
  }
  /// Expects the payloads of these slots in `twin`, and beside them what was there before.
  void expect_payloads(std::vector<std::byte> const& twin, std::vector<std::uint32_t> const& moved) const {
    const std::byte before = twin.front();  // outside of all frames
    for (std::size_t at = 0; at < twin.size(); ++at) {
      const auto slot = static_cast<std::uint32_t>(at / packet::kSlotBytes);
      const std::uint32_t begin = pool_.offset[slot] + pool_.layers[slot].payload;
      const std::uint32_t in_slot = at % packet::kSlotBytes;
      const bool in_payload = in_slot >= begin && in_slot < begin + pool_.layers[slot].payload_length;
      const bool is_moved = std::find(moved.begin(), moved.end(), slot) != moved.end();
      ASSERT_EQ(twin[at], in_payload && is_moved ? std::byte(slot) : before) << "slot " << slot << ", byte " << in_slot;
    }
  }

  Pool pool_;
  std::unique_ptr<SharedBuffer> shared_;
  std::unique_ptr<device::Stream> stream_;
};

TEST_P(RewrittenTest, payloads_of_marked_packets_move_and_nothing_else) {
  for (const std::uint32_t slot : {1U, 2U, 3U, 5U, 6U, 9U, 15U}) {
    pool_.rewritten[slot] = 1;
  }
  pool_.layers[2].payload_length = 60;  // another length than its neighbours'
  pool_.offset[6] = 160;                // another place
  pool_.layers[9].payload_length = 0;
  expect_payloads(after_moving(5 * 100 + 60), {1, 2, 3, 5, 6, 15});
}

TEST_P(RewrittenTest, a_mark_counts_once) {
  pool_.rewritten[4] = 1;
  after_moving(100);
  EXPECT_EQ(pool_.rewritten[4], 0);
  std::fill(pool_.memory.get(), pool_.memory.get() + pool_.bytes().size(), std::byte{99});
  expect_payloads(after_moving(0), {4});
}

TEST_P(RewrittenTest, packets_of_other_batches_keep_their_marks) {
  pool_.rewritten.fill(1);
  const std::array<std::uint32_t, 2> some{3, 8};
  EXPECT_EQ(enqueue_rewritten(*stream_, *shared_, pool_.batch().subset(some)).value(), 200U);
  EXPECT_EQ(std::count(pool_.rewritten.begin(), pool_.rewritten.end(), 1), kRewrittenSlots - 2);
  pool_.rewritten.fill(0);
  expect_payloads(after_moving(0), {3, 8});
}

INSTANTIATE_TEST_SUITE_P(backends, RewrittenTest, ::testing::ValuesIn(device::backend_names()),
                         [](auto const& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace catena::copy
