// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>

namespace catena::share {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kGrowth = 0.1;
constexpr double kMaxPps = 1e8;

NfDemand demand(std::string name, NfCost cost, double pps = 1e5, double limit_ns = 1e6) {
  return {std::move(name), cost, pps, limit_ns, {}};
}
NfDemand light(std::string name) { return demand(std::move(name), {{5'000, 5}, {2'000, 0.5}, 1'000, 1024}); }
NfDemand heavy(std::string name) { return demand(std::move(name), {{60'000, 200}, {5'000, 2}, 1'000, 1024}); }

std::uint32_t sms_of(Schedule const& schedule) {
  return std::accumulate(schedule.shares.begin(), schedule.shares.end(), 0U,
                         [](std::uint32_t sum, Share const& share) { return sum + share.sms; });
}

std::vector<NfDemand> random_chain(std::mt19937& random) {
  const auto up_to = [&random](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  std::vector<NfDemand> nfs;
  const std::size_t count = 1 + random() % 5;
  for (std::size_t i = 0; i < count; ++i) {
    nfs.push_back(demand("nf" + std::to_string(i),
                         {{up_to(50'000) + 100, up_to(200)}, {up_to(10'000), up_to(3)}, up_to(5'000), 1024},
                         1e3 + up_to(2e6), 2e5 + up_to(1e6)));
  }
  return nfs;
}

TEST(Scheduler, parts_are_apart_and_every_nf_has_the_speed_that_it_is_to_have) {
  std::mt19937 random(3);
  int made = 0;
  for (int i = 0; i < 500; ++i) {
    const std::vector<NfDemand> nfs = random_chain(random);
    const GpuShape gpu{8 + static_cast<std::uint32_t>(random() % 125), 1 + static_cast<std::uint32_t>(random() % 4)};
    const Result<Schedule> result = schedule(Mode::kScheduled, nfs, gpu, kGrowth, kMaxPps);
    if (!result.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
      continue;
    }
    ++made;
    ASSERT_LE(sms_of(*result), gpu.sms);
    const double wanted = result->wanted_pps.front();
    std::uint32_t needed_for_more = 0;
    bool can_be_more = true;
    for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
      const Share share = result->shares[nf];
      ASSERT_EQ(share.sms % gpu.step, 0U);
      ASSERT_DOUBLE_EQ(result->wanted_pps[nf], wanted) << "in a chain without branches all are as fast";
      ASSERT_GE(packets_per_s(nfs[nf].cost, share), wanted * (1 - 1e-9));
      ASSERT_LE(latency_ns(nfs[nf].cost, share), nfs[nf].latency_limit_ns);
      const auto more = least_share(nfs[nf].cost, wanted * (1 + kGrowth), nfs[nf].latency_limit_ns, gpu.sms, gpu.step);
      can_be_more = can_be_more && more;
      needed_for_more += more ? more->sms : 0;
    }
    ASSERT_TRUE(wanted == kMaxPps || !can_be_more || needed_for_more > gpu.sms) << "there were SMs for one more round";
  }
  EXPECT_GT(made, 300);
}

TEST(Scheduler, a_heavy_nf_gets_more_than_a_light_one_and_the_chain_is_faster_than_with_even_parts) {
  const std::vector<NfDemand> nfs{light("fw"), heavy("ids"), light("rt")};
  const Schedule scheduled = *schedule(Mode::kScheduled, nfs, {28, 1}, kGrowth);
  const Schedule fair = *schedule(Mode::kFair, nfs, {28, 1}, kGrowth);
  EXPECT_GT(scheduled.shares[1].sms, 4 * scheduled.shares[0].sms);
  const auto slowest = [&nfs](Schedule const& with) {
    double least = 1e18;
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      least = std::min(least, packets_per_s(nfs[i].cost, with.shares[i]));
    }
    return least;
  };
  EXPECT_GT(slowest(scheduled), 1.5 * slowest(fair));
}

TEST(Scheduler, branches_come_first_and_their_sum_is_what_is_in_front_of_them) {
  std::vector<NfDemand> nfs{light("fw"), heavy("ids"), light("lb")};
  nfs[0].next = {1, 2};
  const Schedule result = *schedule(Mode::kScheduled, nfs, {64, 1}, kGrowth);
  EXPECT_DOUBLE_EQ(result.wanted_pps[1], result.wanted_pps[2]);
  EXPECT_DOUBLE_EQ(result.wanted_pps[0], result.wanted_pps[1] + result.wanted_pps[2]);
  EXPECT_GE(packets_per_s(nfs[0].cost, result.shares[0]), result.wanted_pps[0]);
}

/// Chains of which some NFs get fewer packets than they could have.
std::vector<NfDemand> random_chains(std::mt19937& random) {
  const auto up_to = [&random](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  std::vector<NfDemand> all;
  const std::size_t chains = 1 + random() % 4;
  for (std::size_t chain = 0; chain < chains; ++chain) {
    for (NfDemand& nf : random_chain(random)) {
      nf.chain = chain;
      if (random() % 3 != 0) {
        nf.needed_pps = random() % 4 == 0 ? 0 : std::pow(10, 2 + up_to(5));
      }
      all.push_back(nf);
    }
  }
  return all;
}

bool lacks(NfDemand const& nf, double wanted) { return !nf.needed_pps || wanted < *nf.needed_pps; }

/// SMs that a chain takes for `level` packets a second, or what its NFs need of those. None: no number does.
std::optional<std::uint32_t> sms_for(std::vector<NfDemand> const& nfs, std::size_t chain, double level, GpuShape gpu) {
  std::uint32_t sum = 0;
  for (NfDemand const& nf : nfs) {
    if (nf.chain != chain) {
      continue;
    }
    const double wanted = std::min(level, std::max(1.0, nf.needed_pps.value_or(level)));
    const auto share = least_share(nf.cost, wanted, nf.latency_limit_ns, gpu.sms, gpu.step);
    if (!share) {
      return std::nullopt;
    }
    sum += share->sms;
  }
  return sum;
}

TEST(Scheduler, what_one_nf_does_not_need_goes_to_those_that_lack) {
  std::mt19937 random(11);
  int scarce = 0;
  int plenty = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<NfDemand> nfs = random_chains(random);
    const GpuShape gpu{32 + static_cast<std::uint32_t>(random() % 101), 1 + static_cast<std::uint32_t>(random() % 4)};
    const Result<Schedule> result = schedule(Mode::kScheduled, nfs, gpu, kGrowth, kMaxPps);
    if (!result.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
      continue;
    }
    const std::uint32_t used = sms_of(*result);
    ASSERT_LE(used, gpu.sms);
    double lowest = kMaxPps;  // T: of those that lack
    std::map<std::size_t, double> levels;
    bool is_scarce = false;
    for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
      const double wanted = result->wanted_pps[nf];
      ASSERT_GE(packets_per_s(nfs[nf].cost, result->shares[nf]), wanted * (1 - 1e-9));
      if (lacks(nfs[nf], wanted)) {
        is_scarce = true;
        lowest = std::min(lowest, wanted);
        levels[nfs[nf].chain] = wanted;
      }
    }
    for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
      const double wanted = result->wanted_pps[nf];
      const double needed = std::max(1.0, nfs[nf].needed_pps.value_or(kMaxPps));
      ASSERT_GE(wanted, std::min(needed, lowest) * (1 - 1e-9)) << "nobody is below T, but who needs less";
      if (is_scarce) {
        ASSERT_LE(wanted, needed) << "nobody has more than it needs";
        ASSERT_EQ(result->shares[nf].sms,
                  least_share(nfs[nf].cost, wanted, nfs[nf].latency_limit_ns, gpu.sms, gpu.step)->sms);
      }
    }
    for (auto const& [chain, level] : levels) {
      if (level == kMaxPps) {
        continue;
      }
      const auto more = sms_for(nfs, chain, level * (1 + kGrowth), gpu);
      ASSERT_TRUE(!more || *more > gpu.sms - used + sms_for(nfs, chain, level, gpu).value())
          << "SMs are left for a chain that lacks";
    }
    ++(is_scarce ? scarce : plenty);
  }
  EXPECT_GT(scarce, 100);
  EXPECT_GT(plenty, 20);
}

TEST(Scheduler, an_idle_chain_leaves_its_part_to_a_busy_one) {
  std::vector<NfDemand> nfs{heavy("busy"), heavy("idle")};
  nfs[1].chain = 1;
  const Schedule alike = *schedule(Mode::kScheduled, nfs, {64, 2}, kGrowth);
  EXPECT_EQ(alike.shares[0].sms, alike.shares[1].sms);
  nfs[1].needed_pps = 0;
  const Schedule idle = *schedule(Mode::kScheduled, nfs, {64, 2}, kGrowth);
  EXPECT_EQ(idle.shares[1].sms, 2U);
  EXPECT_GT(idle.wanted_pps[0], 1.5 * alike.wanted_pps[0]);
}

TEST(Scheduler, a_chain_at_its_limit_does_not_hold_up_others) {
  std::vector<NfDemand> nfs{heavy("slow"), light("fast")};
  nfs[0].latency_limit_ns = 70'000;  // so few packets a launch that more SMs do not help for long
  nfs[1].chain = 1;
  const Schedule apart = *schedule(Mode::kScheduled, nfs, {64, 1}, kGrowth);
  nfs[1].chain = 0;
  const Schedule together = *schedule(Mode::kScheduled, nfs, {64, 1}, kGrowth);
  EXPECT_DOUBLE_EQ(together.wanted_pps[0], together.wanted_pps[1]) << "in one chain it is of no use";
  EXPECT_GT(apart.wanted_pps[1], 1.5 * apart.wanted_pps[0]);
}

TEST(Scheduler, where_all_have_what_they_need_the_rest_is_for_those_with_least) {
  std::vector<NfDemand> nfs{light("a"), light("b"), light("idle")};
  nfs[0].needed_pps = 2e6;
  nfs[1].needed_pps = 1e6;
  nfs[2].needed_pps = 0;
  const Schedule result = *schedule(Mode::kScheduled, nfs, {64, 1}, kGrowth);
  EXPECT_DOUBLE_EQ(result.wanted_pps[1], result.wanted_pps[2]);
  EXPECT_GT(result.wanted_pps[2], 1e6);
  EXPECT_GE(result.wanted_pps[0], 2e6);
}

TEST(Scheduler, branches_need_what_comes_to_them_and_the_nf_in_front_their_sum) {
  std::vector<NfDemand> nfs{light("fw"), heavy("ids"), light("lb")};
  nfs[0].next = {1, 2};
  nfs[1].needed_pps = 1e4;
  const Schedule result = *schedule(Mode::kScheduled, nfs, {64, 1}, kGrowth);
  EXPECT_DOUBLE_EQ(result.wanted_pps[1], 1e4);
  EXPECT_GT(result.wanted_pps[2], 1e6);
  EXPECT_DOUBLE_EQ(result.wanted_pps[0], result.wanted_pps[1] + result.wanted_pps[2]);
}

TEST(Scheduler, starts_lower_where_the_speed_of_now_is_out_of_reach) {
  std::vector<NfDemand> nfs{heavy("ids"), heavy("vpn")};
  nfs[0].packets_per_s = nfs[1].packets_per_s = 1e9;
  const Result<Schedule> result = schedule(Mode::kScheduled, nfs, {8, 1}, kGrowth);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(sms_of(*result), 8U);
  EXPECT_LT(result->wanted_pps[0], 1e9);
}

TEST(Scheduler, other_modes_give_even_parts_or_everything) {
  const std::vector<NfDemand> nfs{light("a"), light("b"), light("c")};
  const auto sms = [](Schedule const& with) {
    std::vector<std::uint32_t> result;
    for (Share const& share : with.shares) {
      result.push_back(share.sms);
    }
    return result;
  };
  EXPECT_THAT(sms(*schedule(Mode::kFair, nfs, {28, 1})), ElementsAre(10, 9, 9));
  EXPECT_THAT(sms(*schedule(Mode::kFair, nfs, {132, 8})), ElementsAre(48, 40, 40)) << "16 parts of 8";
  EXPECT_THAT(sms(*schedule(Mode::kUncoordinated, nfs, {132, 8})), ElementsAre(128, 128, 128));
  EXPECT_THAT(sms(*schedule(Mode::kTemporal, nfs, {28, 1})), ElementsAre(28, 28, 28));
}

TEST(Scheduler, says_why_it_cannot) {
  const std::vector<NfDemand> four{light("a"), light("b"), light("c"), light("d")};
  EXPECT_THAT(schedule(Mode::kScheduled, four, {3, 1}).status().message(), HasSubstr("3 SMs in parts of 1"));
  EXPECT_THAT(schedule(Mode::kFair, four, {24, 8}).status().message(), HasSubstr("24 SMs in parts of 8"));
  std::vector<NfDemand> nfs{light("fw"), heavy("ids")};
  nfs[1].latency_limit_ns = 30'000;
  for (const Mode mode : {Mode::kScheduled, Mode::kFair, Mode::kUncoordinated, Mode::kTemporal}) {
    const Status status = schedule(mode, nfs, {28, 1}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(status.message(), HasSubstr("NF ids: no launch"));
  }
  nfs[1] = heavy("ids");
  nfs[0].next = {1};
  nfs[1].next = {0};
  EXPECT_THAT(schedule(Mode::kScheduled, nfs, {28, 1}).status().message(), HasSubstr("NF fw is downstream of itself"));
  nfs[1].next = {7};
  EXPECT_TRUE(absl::IsInvalidArgument(schedule(Mode::kScheduled, nfs, {28, 1}).status()));
  nfs[1] = heavy("ids");
  nfs[1].cost.kernel.slope = -1;
  EXPECT_THAT(schedule(Mode::kFair, nfs, {28, 1}).status().message(), HasSubstr("NF ids: costs"));
  nfs[1] = heavy("ids");
  nfs[1].needed_pps = -1;
  EXPECT_THAT(schedule(Mode::kScheduled, nfs, {28, 1}).status().message(), HasSubstr("NF ids: costs"));
  EXPECT_TRUE(absl::IsInvalidArgument(schedule(Mode::kScheduled, four, {28, 1}, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(schedule(Mode::kScheduled, four, {28, 0}).status()));
  EXPECT_TRUE(schedule(Mode::kScheduled, {}, {28, 1})->shares.empty());
}

TEST(Scheduler, modes_have_names) {
  for (const Mode mode : {Mode::kScheduled, Mode::kFair, Mode::kUncoordinated, Mode::kTemporal}) {
    EXPECT_EQ(*parse_mode(to_string(mode)), mode);
  }
  EXPECT_THAT(parse_mode("mps").status().message(), HasSubstr("write scheduled, fair"));
}

TEST(TrafficChange, is_one_of_more_than_a_tenth_that_stays) {
  TrafficChange change;
  const auto look = [&change](double a, double b) { return change.look(std::array<double, 2>{a, b}); };
  EXPECT_TRUE(look(100, 100)) << "there is no schedule yet";
  EXPECT_FALSE(look(109, 91));
  EXPECT_FALSE(look(120, 100)) << "a burst";
  EXPECT_FALSE(look(100, 100));
  EXPECT_FALSE(look(100, 80));
  EXPECT_TRUE(look(100, 80));
  EXPECT_FALSE(look(100, 80)) << "it is scheduled for that now";
  EXPECT_FALSE(look(100, 87));
  EXPECT_FALSE(look(100, 100));
  EXPECT_TRUE(look(100, 120)) << "further away, but away twice in a row";
}

}  // namespace
}  // namespace catena::share
