// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_source.hpp"

#include "pipeline/sharing_nf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace catena::runtime {
namespace {

constexpr share::GpuShape kEightUnits{8, 1};

Result<std::vector<share::NfDemand>> demand_of_one() {
  std::vector<share::NfDemand> demands(1);
  demands[0].name = "nf";
  demands[0].cost = kUnknownCost;
  demands[0].latency_limit_ns = 1e6;
  return demands;
}

TEST(PartSource, a_chain_alone_has_a_plan_of_its_own) {
  PartSource source({}, share::Mode::kFair, {});
  EXPECT_TRUE(source.is_alone());
  EXPECT_FALSE(source.is_given());
  ASSERT_EQ(source.join(kEightUnits, demand_of_one), absl::OkStatus());
  const Result<std::vector<share::Part>> parts = source.parts();
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_EQ(parts->front().share.sms, kEightUnits.sms);
  source.leave();
}

TEST(PartSource, chains_with_common_plans_share_a_device) {
  const SharedPartitions shared{.plans = std::make_shared<share::PartitionPlans>(share::Mode::kFair)};
  PartSource one(shared, share::Mode::kFair, {});
  PartSource other(shared, share::Mode::kFair, {});
  EXPECT_FALSE(one.is_alone());
  ASSERT_EQ(one.join(kEightUnits, demand_of_one), absl::OkStatus());
  ASSERT_EQ(other.join(kEightUnits, demand_of_one), absl::OkStatus());
  EXPECT_LT(one.parts()->front().share.sms, kEightUnits.sms);
  other.leave();
}

TEST(PartSource, another_process_assigns_parts_and_hears_of_changes_only) {
  std::vector<share::Part> assigned(1);
  std::vector<std::vector<share::Part>> reports;
  const SharedPartitions by_process{
      .given = GivenParts{.now = [&assigned] { return assigned; },
                          .taken = [&reports](std::vector<share::Part> const& parts) { reports.push_back(parts); }}};
  PartSource source(by_process, share::Mode::kFair, {});
  EXPECT_TRUE(source.is_given());
  ASSERT_EQ(source.join(kEightUnits, nullptr), absl::OkStatus());
  EXPECT_EQ(source.look(), absl::OkStatus());
  EXPECT_EQ(source.parts()->front().share.sms, kEightUnits.sms) << "all units while no part is assigned";

  assigned[0] = {2, {4, 16}};
  EXPECT_EQ(*source.parts(), assigned);
  source.report(assigned);
  source.report(assigned);
  EXPECT_THAT(reports, ::testing::ElementsAre(assigned));
  assigned[0].first = 5;
  const Status status = source.parts().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a part of 4 from 5 on, of 8");
}

}  // namespace
}  // namespace catena::runtime
