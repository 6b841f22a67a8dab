// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_model.hpp"

#include <gtest/gtest.h>

namespace catena::plan {
namespace {

constexpr Direction kIn = Direction::kToDevice;

/// Coefficients that sums can be done with in the head.
CostModel round_figures() {
  CostModel model;
  const auto set = [&](TransferMethod method, MethodCost const& cost) {
    model.methods[static_cast<std::size_t>(method)].fill(cost);
  };
  set(TransferMethod::kStaged, {.per_transfer_ns = 1000, .per_byte_ns = 0.5});
  set(TransferMethod::kStrided, {.per_transfer_ns = 2000, .per_packet_ns = 30, .per_byte_ns = 0.1});
  set(TransferMethod::kGather,
      {.per_transfer_ns = 3000, .per_packet_ns = 5, .per_packet_fields_ns = 4, .per_byte_ns = 0.25});
  model.host_copy_ns_per_byte = 2;
  model.host_touch_ns = 7;
  model.host_column_ns = 3;
  model.device_copy_ns_per_byte = 0.125;
  model.packets_per_transfer = 100;
  return model;
}

TransferShape columns(bool touches_packet, bool between_slots) {
  return {.kind = TransferShape::Kind::kColumns,
          .bytes = 8,
          .staged_bytes = 8,
          .columns = 2,
          .touches_packet = touches_packet,
          .touches_metadata = !touches_packet,
          .between_slots = between_slots};
}
TransferShape frames(bool between_slots) {
  return {.kind = TransferShape::Kind::kBody,
          .bytes = 400,
          .staged_bytes = 480,
          .longest_bytes = 1000,
          .whole_frames = true,
          .between_slots = between_slots};
}

TEST(CostModel, OnlyTheLaunchPaysForTheTransferOfStagedBytes) {
  const TransferShape launch{.bytes = 20, .staged_bytes = 20};
  EXPECT_EQ(round_figures().cost(TransferMethod::kStaged, kIn, launch).total_ns, 10 + 10);
  EXPECT_EQ(round_figures().cost(TransferMethod::kStaged, kIn, columns(true, false)).total_ns, 4 + 2 * 3 + 7);
}

TEST(CostModel, StagedColumnsCostTheCpuATouchOnlyIfThePacketIsTouched) {
  EXPECT_EQ(round_figures().cost(TransferMethod::kStaged, kIn, columns(true, false)).cpu_ns, 2 * 3 + 7);
  EXPECT_EQ(round_figures().cost(TransferMethod::kStaged, kIn, columns(false, false)).cpu_ns, 2 * 3);
}

TEST(CostModel, StagedBodiesAreCopiedByTheCpuAndOnTheDeviceIntoTheSharedBuffer) {
  const MoveCost direct = round_figures().cost(TransferMethod::kStaged, kIn, frames(false));
  EXPECT_EQ(direct.bytes, 480);
  EXPECT_EQ(direct.cpu_ns, 400 * 2);
  EXPECT_EQ(direct.total_ns, 480 * 0.5 + 800);
  EXPECT_EQ(round_figures().cost(TransferMethod::kStaged, kIn, frames(true)).total_ns, 480 * 0.5 + 800 + 400 * 0.125);
}

TEST(CostModel, StridedMovesTheLongestFrameForEachPacket) {
  const MoveCost cost = round_figures().cost(TransferMethod::kStrided, kIn, frames(true));
  EXPECT_EQ(cost.bytes, 1000);
  EXPECT_EQ(cost.total_ns, 20 + 100);
  EXPECT_EQ(cost.cpu_ns, 0);
}

TEST(CostModel, AShortPacketCostsTheLeastTimeOfAPacket) {
  TransferShape shape = frames(true);
  shape.bytes = shape.longest_bytes = 10;
  EXPECT_EQ(round_figures().cost(TransferMethod::kStrided, kIn, shape).total_ns, 20 + 30);
  EXPECT_EQ(round_figures().cost(TransferMethod::kGather, kIn, shape).total_ns, 30 + 5);
  EXPECT_EQ(round_figures().cost(TransferMethod::kGather, kIn, columns(true, true)).total_ns, 30 + 4);
}

TEST(CostModel, MethodsCarryWhatTheyCan) {
  EXPECT_TRUE(CostModel::can_carry(TransferMethod::kStrided, frames(true)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kStrided, frames(false)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kStrided, columns(true, true)));
  EXPECT_TRUE(CostModel::can_carry(TransferMethod::kGather, columns(true, true)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kGather, columns(true, false)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kGather, columns(false, true)));
  EXPECT_TRUE(CostModel::can_carry(TransferMethod::kGather, frames(true)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kGather, frames(false)));
  EXPECT_FALSE(CostModel::can_carry(TransferMethod::kGather, TransferShape{}));
  EXPECT_TRUE(CostModel::can_carry(TransferMethod::kStaged, TransferShape{}));
}

TEST(CostModel, CheapestIsTheCheapestOfThoseThatMay) {
  CostModel model = round_figures();
  MoveCost cost;
  EXPECT_EQ(model.cheapest(kIn, frames(true), cost),
            TransferMethod::kStrided);  // 120; gather 130, staged 1090
  EXPECT_EQ(cost.total_ns, 120);
  EXPECT_EQ(model.cheapest(kIn, frames(false), cost), TransferMethod::kStaged);
  model.available = method_bit(TransferMethod::kGather);
  EXPECT_EQ(model.cheapest(kIn, frames(true), cost), TransferMethod::kGather);
  model.available = 0;
  EXPECT_EQ(model.cheapest(kIn, frames(true), cost), TransferMethod::kStaged);
}

}  // namespace
}  // namespace catena::plan
