// SPDX-License-Identifier: Apache-2.0
#include "plan/unit_size.hpp"

#include <gtest/gtest.h>

#include "plan/testing/chains.hpp"

namespace catena::plan {
namespace {

/// Transfers of 100 ns and 1 ns a byte: 900 bytes take 900 of 1,000 ns.
CostModel simple_costs() {
  CostModel costs = CostModel::h200();
  costs.methods[static_cast<std::size_t>(TransferMethod::kStaged)].fill({.per_transfer_ns = 100, .per_byte_ns = 1});
  return costs;
}

/// A plan of one GPU NF that moves frames of `in` bytes in and, where not 0, of `out` bytes back.
Plan plan_of(double in, double out) {
  GpuStep step;
  step.bytes_to_device = in;
  step.bytes_to_host = out;
  step.moves.push_back({Direction::kToDevice, TransferShape::Kind::kBody, TransferMethod::kStaged, 0, {}});
  if (out > 0) {
    step.moves.push_back({Direction::kToHost, TransferShape::Kind::kBody, TransferMethod::kStaged, 0, {}});
  }
  Plan plan{};
  plan.nfs.push_back({"nf", Processor::kGpu, step});
  return plan;
}

TEST(UnitSize, a_block_is_what_a_transfer_needs_for_nine_tenths_of_its_speed) {
  EXPECT_DOUBLE_EQ(block_bytes(simple_costs()), 900);
  // 4 KB, 64 KB and 1 MB reach 1.5, 17 and 48 GB/s of 50.8 on an H200: nine tenths take 1.2 MB
  EXPECT_NEAR(block_bytes(CostModel::h200()), 1.23e6, 0.01e6);
}

TEST(UnitSize, is_a_quarter_of_a_block_in_packets_rounded_up) {
  EXPECT_EQ(unit_packets_for(simple_costs(), plan_of(10, 0)), 23U) << "900 / 10 / 4 = 22.5";
  EXPECT_EQ(unit_packets_for(simple_costs(), plan_of(5, 15)), 23U) << "the mean of both directions";
  EXPECT_EQ(unit_packets_for(CostModel::h200(), plan_of(1550, 0)), 200U);
}

TEST(UnitSize, has_bounds) {
  EXPECT_EQ(unit_packets_for(simple_costs(), plan_of(1500, 0)), 16U);
  EXPECT_EQ(unit_packets_for(CostModel::h200(), plan_of(100, 0)), 1024U);
  EXPECT_EQ(unit_packets_for(simple_costs(), Plan{}), 1024U) << "nothing moves";
  CostModel free = simple_costs();
  free.methods[static_cast<std::size_t>(TransferMethod::kStaged)].fill({});
  EXPECT_EQ(unit_packets_for(free, plan_of(10, 0)), 1024U);
}

TEST(UnitSize, goes_by_what_moves_frames_where_some_steps_move_a_few_bytes_only) {
  PlanInput input;
  input.nfs = testing::chain_c(1);
  input.profile = PacketProfile::fixed(1514);
  const Result<Plan> plan = make_plan(input);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // encrypt moves the frame in and back; nids some bytes of metadata
  EXPECT_GT(bytes_per_transfer(*plan), 1514);
  EXPECT_LT(bytes_per_transfer(*plan), 1514 + 200);
}

}  // namespace
}  // namespace catena::plan
