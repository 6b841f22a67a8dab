// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_buffers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kSlotsOfParts = 2048;
constexpr std::uint32_t kPacketsOfParts = 64;
constexpr std::size_t kBranches = 2;

class PartBuffersTest : public ::testing::Test {
 protected:
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(kSlotsOfParts, kPacketsOfParts, 8, 4).value();
  BufferReservation reserve_{*pool_};
  PartBuffers buffers_{*pool_, reserve_, kBranches, 1};
};

TEST_F(PartBuffersTest, a_ready_stage_has_all_parts_and_slots_of_a_unit) {
  ASSERT_TRUE(buffers_.is_ready());
  EXPECT_EQ(buffers_.parts().size(), kBranches + 1);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units() - kBranches - 1);
  EXPECT_EQ(pool_->free_slots(), kSlotsOfParts - kPacketsOfParts);
  buffers_.close();
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
  EXPECT_EQ(pool_->free_slots(), kSlotsOfParts);
}

TEST_F(PartBuffersTest, parts_have_what_is_known_of_their_unit_and_copies_are_on_no_device) {
  ASSERT_TRUE(buffers_.is_ready());
  memory::Unit* const unit = pool_->acquire_unit();
  ASSERT_NE(unit, nullptr);
  unit->first_index = 5;
  unit->end_index = 9;
  unit->arrival_ns = 77;
  unit->device_epoch = 3;
  unit->host_fallback = true;
  memory::Unit& own = buffers_.part(1, *unit);
  own.slots()[own.count++] = 0;
  EXPECT_EQ(own.first_index, 5U);
  EXPECT_EQ(own.end_index, 9U);
  EXPECT_EQ(own.arrival_ns, 77U);
  EXPECT_EQ(own.device_epoch, 3U);
  EXPECT_TRUE(own.host_fallback);
  EXPECT_FALSE(buffers_.has_copies(1));
  ASSERT_TRUE(buffers_.has_copies(kBranches));
  memory::Unit& copies = buffers_.part(kBranches, *unit);
  const std::uint32_t slot = buffers_.take_slot();
  copies.slots()[copies.count++] = slot;
  EXPECT_EQ(copies.end_index, 9U);
  EXPECT_EQ(copies.device_epoch, 0U);
  EXPECT_FALSE(copies.host_fallback);
  pool_->release_unit(unit);

  buffers_.report_used();
  EXPECT_EQ(buffers_.take(0), nullptr) << "empty";
  EXPECT_EQ(buffers_.take(1), &own);
  EXPECT_EQ(buffers_.take(kBranches), &copies);
  EXPECT_NE(buffers_.parts()[0], nullptr) << "kept for the next unit";
  ASSERT_TRUE(buffers_.is_ready());
  EXPECT_EQ(pool_->free_slots(), kSlotsOfParts - kPacketsOfParts - 1) << "the used slot is replaced";
  own.count = 0;
  pool_->release_unit(&own);
  pool_->release_slots(copies.used_slots());
  pool_->release_unit(&copies);
  buffers_.close();
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
  EXPECT_EQ(pool_->free_slots(), kSlotsOfParts);
}

}  // namespace
}  // namespace catena::runtime
