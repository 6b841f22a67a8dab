// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/partition_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace catena::share {
namespace {

using ::testing::HasSubstr;

constexpr GpuShape kGpu{132, 2};

/// A chain of tests.
struct Chain {
  std::vector<NfDemand> nfs;
  Status refusal;
  std::unique_ptr<PartitionPlan::Member> member;

  PartitionPlan::Demands demands() {
    return [this]() -> Result<std::vector<NfDemand>> {
      CATENA_RETURN_IF_ERROR(refusal);
      return nfs;
    };
  }
  Status join(PartitionPlan& partition_plan, GpuShape gpu = kGpu) {
    Result<std::unique_ptr<PartitionPlan::Member>> joined = partition_plan.join(gpu, demands());
    CATENA_RETURN_IF_ERROR(joined.status());
    member = *std::move(joined);
    return absl::OkStatus();
  }
};

NfDemand nf(std::string name, double ns_per_packet, double packets_per_s = 0) {
  return {std::move(name), {.kernel = {2000, ns_per_packet}, .transfer = {1000, 0.5}}, packets_per_s};
}

std::vector<Part> all_parts(std::vector<Chain*> const& chains) {
  std::vector<Part> all;
  for (Chain* chain : chains) {
    for (Part const& part : chain->member->parts()) {
      all.push_back(part);
    }
  }
  return all;
}

/// Whether no SM is in two parts, and none beyond the last.
bool are_apart(std::vector<Part> const& parts, GpuShape gpu) {
  std::vector<int> owners(gpu.sms);
  for (Part const& part : parts) {
    for (std::uint32_t sm = part.first; sm < part.first + part.share.sms; ++sm) {
      if (sm >= gpu.sms || ++owners[sm] > 1) {
        return false;
      }
    }
  }
  return true;
}

TEST(PartitionPlan, of_one_chain_is_its_schedule) {
  for (const Mode mode : {Mode::kScheduled, Mode::kFair, Mode::kUncoordinated, Mode::kTemporal}) {
    const auto partition_plan = std::make_shared<PartitionPlan>(mode);
    Chain chain{{nf("a", 50), nf("b", 150), nf("c", 10)}, {}, nullptr};
    ASSERT_TRUE(chain.join(*partition_plan).ok());
    const Result<Schedule> schedule = share::schedule(mode, chain.nfs, kGpu, 0.02);
    ASSERT_TRUE(schedule.ok());
    const std::vector<Part> parts = chain.member->parts();
    ASSERT_EQ(parts.size(), 3U);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].share, schedule->shares[i]);
    }
  }
}

TEST(PartitionPlan, chains_that_come_and_go_have_parts_apart) {
  for (const Mode mode : {Mode::kScheduled, Mode::kFair}) {
    const auto partition_plan = std::make_shared<PartitionPlan>(mode);
    std::mt19937 random(3);
    std::vector<std::unique_ptr<Chain>> chains;
    for (int step = 0; step < 200; ++step) {
      if (chains.size() < 5 && (chains.empty() || random() % 2 == 0)) {
        auto chain = std::make_unique<Chain>();
        const std::size_t nfs = 1 + random() % 4;
        for (std::size_t i = 0; i < nfs; ++i) {
          chain->nfs.push_back(nf("nf", 1 + static_cast<double>(random() % 300)));
        }
        ASSERT_TRUE(chain->join(*partition_plan).ok());
        chains.push_back(std::move(chain));
      } else {
        chains.erase(chains.begin() + static_cast<std::ptrdiff_t>(random() % chains.size()));
        ASSERT_TRUE(partition_plan->look(std::chrono::steady_clock::now() + step * 2 * PartitionPlan::kPeriod).ok());
      }
      std::vector<Chain*> there;
      for (auto const& chain : chains) {
        there.push_back(chain.get());
        ASSERT_EQ(chain->member->parts().size(), chain->nfs.size());
      }
      ASSERT_TRUE(are_apart(all_parts(there), kGpu));
    }
  }
}

TEST(PartitionPlan, a_chain_that_comes_takes_from_the_others) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kFair);
  Chain first{{nf("a", 50)}, {}, nullptr};
  Chain second{{nf("b", 50)}, {}, nullptr};
  ASSERT_TRUE(first.join(*partition_plan).ok());
  EXPECT_EQ(first.member->parts().front().share.sms, 132U);
  ASSERT_TRUE(second.join(*partition_plan).ok());
  EXPECT_EQ(first.member->parts().front().share.sms, 66U);
  EXPECT_EQ(second.member->parts().front().first, 66U);
}

TEST(PartitionPlan, what_a_chain_left_is_handed_out_at_the_next_look) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kFair);
  Chain stays{{nf("a", 50)}, {}, nullptr};
  ASSERT_TRUE(stays.join(*partition_plan).ok());
  {
    Chain leaves{{nf("b", 50), nf("c", 50)}, {}, nullptr};
    ASSERT_TRUE(leaves.join(*partition_plan).ok());
    EXPECT_EQ(stays.member->parts().front().share.sms, 44U);
  }
  ASSERT_TRUE(partition_plan->look().ok());
  EXPECT_EQ(stays.member->parts().front().share.sms, 132U);
}

TEST(PartitionPlan, follows_speeds_and_not_more_often_than_its_period) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kScheduled);
  Chain chain{{nf("a", 50, 1e6), nf("b", 50, 1e6)}, {}, nullptr};
  ASSERT_TRUE(chain.join(*partition_plan).ok());
  auto now = std::chrono::steady_clock::now();
  ASSERT_TRUE(partition_plan->look(now).ok());
  const std::vector<Part> before = chain.member->parts();
  chain.nfs[1].cost.kernel.slope = 500;  // its packets became dearer, as larger ones are
  chain.nfs[1].packets_per_s = 1e5;
  ASSERT_TRUE(partition_plan->look(now + PartitionPlan::kPeriod / 2).ok());
  EXPECT_EQ(chain.member->parts(), before) << "too early to look";
  ASSERT_TRUE(partition_plan->look(now += PartitionPlan::kPeriod).ok());
  EXPECT_EQ(chain.member->parts(), before) << "a single look changes nothing";
  ASSERT_TRUE(partition_plan->look(now += PartitionPlan::kPeriod).ok());
  EXPECT_GT(chain.member->parts()[1].share.sms, before[1].share.sms);
}

TEST(PartitionPlan, gives_what_a_chain_does_not_need_to_others_and_back_as_soon_as_packets_wait) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kScheduled);
  Chain busy{{nf("a", 150, 1e6)}, {}, nullptr};
  Chain other{{nf("b", 150, 1e6)}, {}, nullptr};
  ASSERT_TRUE(busy.join(*partition_plan).ok());
  ASSERT_TRUE(other.join(*partition_plan).ok());
  const auto sms = [](Chain const& chain) { return chain.member->parts().front().share.sms; };
  const std::uint32_t half = sms(busy);
  EXPECT_EQ(sms(other), half);
  auto now = std::chrono::steady_clock::now();
  const auto look = [&] { return partition_plan->look(now += PartitionPlan::kPeriod); };
  ASSERT_TRUE(look().ok());
  other.nfs[0].packets_per_s = 0;
  other.nfs[0].needed_pps = 0;
  ASSERT_TRUE(look().ok());
  EXPECT_EQ(sms(other), half) << "a single look takes nothing away";
  ASSERT_TRUE(look().ok());
  EXPECT_EQ(sms(other), kGpu.step);
  EXPECT_GT(sms(busy), half);
  other.nfs[0].packets_per_s = 1000;
  other.nfs[0].needed_pps.reset();
  ASSERT_TRUE(look().ok());
  EXPECT_EQ(sms(other), half) << "packets wait: at the next look";
}

TEST(PartitionPlan, is_one_for_each_device) {
  PartitionPlans partition_plans(Mode::kFair);
  EXPECT_EQ(partition_plans.of("cuda:0 H100"), partition_plans.of("cuda:0 H100"));
  EXPECT_NE(partition_plans.of("cuda:0 H100"), partition_plans.of("cuda:1 H100"));
  EXPECT_EQ(partition_plans.of("cuda:0 H100")->mode(), Mode::kFair);
}

TEST(PartitionPlan, a_chain_that_cannot_join_changes_nothing) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kFair);
  Chain chain{{nf("a", 50)}, {}, nullptr};
  ASSERT_TRUE(chain.join(*partition_plan).ok());
  const std::vector<Part> before = chain.member->parts();
  Chain unmeasured{{nf("b", 50)}, absl::FailedPreconditionError("nobody knows what it costs"), nullptr};
  EXPECT_EQ(unmeasured.join(*partition_plan), unmeasured.refusal);
  Chain many{std::vector<NfDemand>(66, nf("c", 50)), {}, nullptr};
  EXPECT_TRUE(absl::IsResourceExhausted(many.join(*partition_plan)));
  Chain other_shape{{nf("d", 50)}, {}, nullptr};
  EXPECT_THAT(std::string(other_shape.join(*partition_plan, {32, 2}).message()),
              HasSubstr("others share 132 compute units"));
  EXPECT_EQ(chain.member->parts(), before);
}

TEST(PartitionPlan, parts_stay_where_a_chain_does_not_say_what_it_wants) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kFair);
  Chain chain{{nf("a", 50)}, {}, nullptr};
  Chain other{{nf("b", 50)}, {}, nullptr};
  ASSERT_TRUE(chain.join(*partition_plan).ok());
  ASSERT_TRUE(other.join(*partition_plan).ok());
  const std::vector<Part> before = all_parts({&chain, &other});
  other.refusal = absl::UnavailableError("not now");
  EXPECT_EQ(partition_plan->look(), other.refusal);
  EXPECT_EQ(all_parts({&chain, &other}), before);
}

TEST(PartitionPlan, moves_what_is_behind_an_nf_with_its_chain) {
  const auto partition_plan = std::make_shared<PartitionPlan>(Mode::kScheduled);
  Chain first{{nf("a", 50), nf("b", 50)}, {}, nullptr};
  Chain branched{{nf("fw", 50), nf("x", 50), nf("y", 50)}, {}, nullptr};
  branched.nfs[0].next = {1, 2};
  ASSERT_TRUE(first.join(*partition_plan).ok());
  ASSERT_TRUE(branched.join(*partition_plan).ok());
  const std::vector<Part> parts = branched.member->parts();
  EXPECT_GT(parts[0].share.sms, parts[1].share.sms) << "it has the packets of both behind it";
}

}  // namespace
}  // namespace catena::share
