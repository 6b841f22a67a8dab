// SPDX-License-Identifier: Apache-2.0
#include "io/eal/dmadev_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hostcopy/accelerator.hpp"
#include "base/hostcopy/testing/engine_check.hpp"
#include "io/eal/eal.hpp"

namespace catena::eal {
namespace {

TEST(DmadevEngine, the_skeleton_moves_each_byte_to_its_place_and_no_other) {
  ASSERT_EQ(start(), absl::OkStatus());
  Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine("dmadev-skeleton", dmadev_engine_kinds());
  ASSERT_TRUE(engine.ok()) << engine.status();
  hostcopy::testing::expect_moves_each_byte(**engine, 3000, 500);
  EXPECT_TRUE(absl::IsUnavailable(hostcopy::open_engine("dmadev-skeleton", dmadev_engine_kinds()).status()));
}

TEST(DmadevEngine, the_skeleton_serves_again_after_a_stop) {
  ASSERT_EQ(start(), absl::OkStatus());
  Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine("dmadev-skeleton", dmadev_engine_kinds());
  ASSERT_TRUE(engine.ok()) << engine.status();
  hostcopy::testing::expect_moves_each_byte(**engine, 100, 20);
  EXPECT_TRUE((*engine)->stop());
  hostcopy::testing::expect_moves_each_byte(**engine, 100, 20);
}

TEST(DmadevEngine, the_skeleton_reaches_many_memories_that_come_and_go) {
  ASSERT_EQ(start(), absl::OkStatus());
  Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine("dmadev-skeleton", dmadev_engine_kinds());
  ASSERT_TRUE(engine.ok()) << engine.status();
  hostcopy::testing::expect_reaches_many_memories(**engine);
}

TEST(DmadevEngine, a_missing_device_is_reported_with_what_to_do) {
  ASSERT_EQ(start(), absl::OkStatus());
  const Status missing = hostcopy::open_engine("dmadev", dmadev_engine_kinds()).status();
  if (!missing.ok()) {
    EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr("vfio-pci"));
  }
}

}  // namespace
}  // namespace catena::eal
