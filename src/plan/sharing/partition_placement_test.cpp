// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/partition_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace catena::share {
namespace {

using ::testing::ElementsAre;
using Limit = Estimate::Limit;
using Where = NfOptions::Where;

/// A thousand packets of such an NF take 10 us on any number of SMs with a packet each, and nothing else.
const NfCost kQuick{{10'000, 0}, {}, 0, 1024};

NfOptions on_cpu(double ns) { return {Where::kCpu, ns, std::nullopt}; }
NfOptions either(double cpu_ns, NfCost gpu) { return {Where::kEither, cpu_ns, gpu}; }

/// Nothing moves.
Result<std::vector<NfMoves>> for_nothing(OnGpu const& on_gpu) { return std::vector<NfMoves>(on_gpu.size()); }

/// A neighbour on the GPU makes moves cheaper, as on the shared buffer.
Result<std::vector<NfMoves>> cheaper_side_by_side(OnGpu const& on_gpu) {
  std::vector<NfMoves> moves(on_gpu.size());
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    if (on_gpu[i]) {
      const bool comes_from_gpu = i > 0 && on_gpu[i - 1];
      const bool goes_to_gpu = i + 1 < on_gpu.size() && on_gpu[i + 1];
      moves[i] = {comes_from_gpu ? 1.0 : 20.0 + static_cast<double>(i), goes_to_gpu ? 1.0 : 15.0, 3.0};
    }
  }
  return moves;
}

Estimate estimate_of(std::vector<NfOptions> const& nfs, Machine const& machine, OnGpu const& on_gpu,
                     std::vector<NfMoves> const& moves) {
  return estimate(nfs, machine, on_gpu, moves);
}

// ---- what a chain achieves

TEST(Estimate, workers_share_all_work_but_an_nf_has_no_more_of_them_than_shards) {
  const std::vector<NfOptions> nfs{on_cpu(100), on_cpu(300)};
  const std::vector<NfMoves> none(2);
  Estimate one = estimate_of(nfs, {.workers = 1}, {false, false}, none);
  EXPECT_DOUBLE_EQ(one.packets_per_s, 1e9 / 400);
  EXPECT_EQ(one.limit, Limit::kWorkers);
  EXPECT_THAT(one.nf_ns, ElementsAre(100, 300));
  one = estimate_of(nfs, {.workers = 4}, {false, false}, none);
  EXPECT_DOUBLE_EQ(one.packets_per_s, 1e9 / 300) << "its one shard is the second NF's";
  EXPECT_EQ(one.limit, Limit::kNf);
  EXPECT_EQ(one.nf, 1U);
  EXPECT_DOUBLE_EQ(estimate_of(nfs, {.workers = 4, .shards = 4}, {false, false}, none).packets_per_s, 1e9 / 100);
}

TEST(Estimate, launches_overlap_but_kernels_of_one_nf_do_not) {
  // 1,000 packets: a kernel of 10 us, and 30 us to move them
  const std::vector<NfOptions> nfs{either(1, kQuick)};
  const std::vector<NfMoves> moves{{15, 15, 0}};
  Machine machine{.workers = 1, .shards = 1, .sms = 1, .launch_packets = 1000, .launches_in_flight = 1};
  Estimate result = estimate_of(nfs, machine, {true}, moves);
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1000 / 40e-6);
  EXPECT_EQ(result.limit, Limit::kGpu);
  EXPECT_EQ(result.shares.front(), (Share{1, 1000}));
  EXPECT_DOUBLE_EQ(result.nf_ns.front(), 40);
  machine.launches_in_flight = 2;
  EXPECT_DOUBLE_EQ(estimate_of(nfs, machine, {true}, moves).packets_per_s, 1000 / 20e-6);
  machine.launches_in_flight = 8;
  result = estimate_of(nfs, machine, {true}, moves);
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1e9 / 15) << "the bus, which has both directions at once";
  EXPECT_EQ(result.limit, Limit::kBus);
  EXPECT_DOUBLE_EQ(estimate_of(nfs, machine, {true}, {{1, 1, 0}}).packets_per_s, 1000 / 10e-6) << "kernels";
}

TEST(Estimate, what_the_host_does_for_a_launch_is_work_of_its_cores) {
  NfCost cost = kQuick;
  const std::vector<NfMoves> moves{{0, 0, 50}};
  const Machine machine{.workers = 1, .sms = 1, .launch_packets = 1000, .launches_in_flight = 100};
  EXPECT_DOUBLE_EQ(estimate_of({either(1, cost)}, machine, {true}, moves).packets_per_s, 1e9 / 50);
  cost.cpu_ns_per_packet = 80;
  EXPECT_DOUBLE_EQ(estimate_of({either(1, cost)}, machine, {true}, moves).packets_per_s, 1e9 / 80)
      << "that was measured, and more than the plan says";
}

TEST(Estimate, rx_and_tx_are_work_and_each_has_a_worker_of_its_own_at_most) {
  const std::vector<NfOptions> nfs{on_cpu(10)};
  Machine machine{.workers = 1, .rx_ns = 60, .tx_ns = 30};
  Estimate result = estimate_of(nfs, machine, {false}, {{}});
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1e9 / 100);
  EXPECT_EQ(result.limit, Limit::kWorkers);
  machine.workers = 8;
  result = estimate_of(nfs, machine, {false}, {{}});
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1e9 / 60);
  EXPECT_EQ(result.limit, Limit::kRx);
  machine.rx_ns = 20;
  result = estimate_of(nfs, machine, {false}, {{}});
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1e9 / 30);
  EXPECT_EQ(result.limit, Limit::kTx);
  machine.ends = 2;
  EXPECT_DOUBLE_EQ(estimate_of(nfs, machine, {false}, {{}}).packets_per_s, 2e9 / 30);
}

TEST(Estimate, an_nf_on_the_cpu_pays_for_packets_that_come_from_the_gpu) {
  std::vector<NfOptions> nfs{either(10, kQuick), on_cpu(20), on_cpu(20)};
  nfs[1].after_gpu_ns = nfs[2].after_gpu_ns = 70;
  const Machine machine{.workers = 1, .sms = 1, .launch_packets = 1000, .launches_in_flight = 100};
  const std::vector<NfMoves> none(3);
  EXPECT_THAT(estimate_of(nfs, machine, {false, false, false}, none).nf_ns, ElementsAre(10, 20, 20));
  const Estimate result = estimate_of(nfs, machine, {true, false, false}, none);
  EXPECT_EQ(result.nf_ns[1], 70);
  EXPECT_EQ(result.nf_ns[2], 20) << "the one before it has them in order";
  EXPECT_DOUBLE_EQ(result.packets_per_s, 1e9 / 90);
}

TEST(Estimate, the_host_does_more_for_an_nf_on_the_gpu_that_shares_no_moves) {
  NfCost cost = kQuick;
  cost.cpu_ns_per_packet = 20;
  std::vector<NfOptions> nfs{either(10, cost), either(10, cost), either(10, cost)};
  for (NfOptions& nf : nfs) {
    nf.host_alone_ns = 60;
  }
  const Machine machine{.workers = 1, .sms = 3, .launch_packets = 1000, .launches_in_flight = 100};
  const std::vector<NfMoves> none(3);
  const auto ns = [&](OnGpu const& on_gpu) { return 1e9 / estimate_of(nfs, machine, on_gpu, none).packets_per_s; };
  EXPECT_NEAR(ns({true, true, true}), 60, 1e-6) << "as they were measured together";
  EXPECT_NEAR(ns({false, true, false}), 10 + 60 + 10, 1e-6);
  EXPECT_NEAR(ns({true, true, false}), 20 + 40 + 10, 1e-6) << "the second has one of two beside it, the first all";
  nfs[1].gpu.reset();
  EXPECT_NEAR(ns({true, false, false}), 20 + 10 + 10, 1e-6) << "nobody can be beside it: so it was measured";
}

TEST(Estimate, sms_go_to_the_nf_that_needs_them) {
  // 100 ns of an SM for each packet, and 300
  const NfCost light{{0, 100}, {}, 0, 1024};
  const NfCost heavy{{0, 300}, {}, 0, 1024};
  const Estimate result = estimate_of({either(1, light), either(1, heavy)},
                                      {.workers = 1, .sms = 8, .launch_packets = 1200}, {true, true}, {{}, {}});
  EXPECT_EQ(result.shares[0].sms, 2U);
  EXPECT_EQ(result.shares[1].sms, 6U);
  EXPECT_DOUBLE_EQ(result.packets_per_s, 2 / 100e-9);
}

TEST(Estimate, what_does_not_fit_is_told_with_the_reason) {
  NfOptions late = either(1, {{50'000, 1}, {}, 0, 1024});
  late.latency_limit_ns = 40'000;
  Estimate result = estimate_of({on_cpu(1), late}, {.workers = 1, .sms = 8}, {false, true}, {{}, {}});
  EXPECT_EQ(result.limit, Limit::kLatency);
  EXPECT_EQ(result.nf, 1U);
  EXPECT_EQ(result.packets_per_s, 0);
  EXPECT_FALSE(result.fits());
  result = estimate_of({either(1, kQuick), either(1, kQuick), either(1, kQuick)}, {.workers = 1, .sms = 2},
                       {true, true, true}, {{}, {}, {}});
  EXPECT_EQ(result.limit, Limit::kSms);
}

TEST(Estimate, nothing_known_limits_nothing) {
  const Estimate result = estimate_of({{}, {Where::kGpu}}, {.workers = 1, .sms = 8}, {false, true}, {{}, {}});
  EXPECT_EQ(result.limit, Limit::kUnknown);
  EXPECT_EQ(result.packets_per_s, std::numeric_limits<double>::infinity());
}

// ---- the choice

TEST(Place, an_nf_goes_where_the_chain_is_faster_and_to_the_cpu_if_that_is_the_same) {
  const Machine machine{.workers = 1, .sms = 8, .launch_packets = 1000};
  auto placed = place(std::vector{either(900, kQuick), on_cpu(50)}, machine, for_nothing);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_THAT(placed->on_gpu, ElementsAre(true, false));
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kFaster, Reason::kFixed));
  EXPECT_DOUBLE_EQ(placed->chosen.packets_per_s, 1e9 / 50);
  EXPECT_DOUBLE_EQ(placed->all_cpu.packets_per_s, 1e9 / 950);
  ASSERT_TRUE(placed->otherwise[0]);
  EXPECT_DOUBLE_EQ(placed->otherwise[0]->packets_per_s, 1e9 / 950);
  EXPECT_FALSE(placed->otherwise[1]) << "nobody asked";

  const NfCost slow{{5'000'000, 0}, {}, 0, 1024};
  placed = place(std::vector{either(900, slow)}, machine, for_nothing);
  EXPECT_THAT(placed->on_gpu, ElementsAre(false)) << "its launches take too long";
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kLatency));

  // the other NF is the slowest either way
  placed = place(std::vector{either(900, kQuick), on_cpu(1000)}, {.workers = 2, .sms = 8, .launch_packets = 1000},
                 for_nothing);
  EXPECT_THAT(placed->on_gpu, ElementsAre(false, false));
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kNotFaster, Reason::kFixed));
}

TEST(Place, what_is_not_known_stays_on_the_cpu) {
  const Machine machine{.workers = 1, .sms = 8};
  NfOptions no_cpu = either(1, kQuick);
  no_cpu.cpu_ns.reset();
  NfOptions no_gpu = either(1e6, kQuick);
  no_gpu.gpu.reset();
  const auto placed = place(std::vector{no_cpu, no_gpu, either(1e5, kQuick)}, machine, for_nothing);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->on_gpu, ElementsAre(false, false, true));
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kNotKnown, Reason::kNotKnown, Reason::kFaster));
}

TEST(Place, without_a_gpu_all_is_on_the_cpu) {
  const auto placed = place(std::vector{either(1e6, kQuick)}, {.workers = 1, .sms = 0}, for_nothing);
  EXPECT_THAT(placed->on_gpu, ElementsAre(false));
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kNoGpu));
}

TEST(Place, a_full_gpu_leaves_nfs_on_the_cpu) {
  NfOptions fixed = either(1, kQuick);
  fixed.where = Where::kGpu;
  const auto placed = place(std::vector{fixed, either(1e6, kQuick)}, {.workers = 1, .sms = 1}, for_nothing);
  EXPECT_THAT(placed->on_gpu, ElementsAre(true, false));
  EXPECT_THAT(placed->reasons, ElementsAre(Reason::kFixed, Reason::kFull));
}

TEST(Place, neighbours_go_together_where_one_alone_would_not) {
  // alone each has dear moves, and side by side the chain is faster than on the CPU
  const Machine machine{.workers = 1, .sms = 8, .launch_packets = 1000, .launches_in_flight = 100};
  const auto price = [](OnGpu const& on_gpu) -> Result<std::vector<NfMoves>> {
    return on_gpu[0] && on_gpu[1] ? std::vector<NfMoves>{{50, 0, 0}, {0, 50, 0}}
                                  : std::vector<NfMoves>{{on_gpu[0] ? 500.0 : 0, 0, 0}, {on_gpu[1] ? 500.0 : 0, 0, 0}};
  };
  const auto placed = place(std::vector{either(100, kQuick), either(100, kQuick)}, machine, price);
  EXPECT_THAT(placed->on_gpu, ElementsAre(true, true));
}

TEST(Place, at_small_packets_a_chain_does_not_go_to_the_gpu_and_back_for_one_nf) {
  // an NF in the middle that is dear on the CPU, between two that are cheap there, but not with packets from the GPU
  NfCost cost = kQuick;
  cost.cpu_ns_per_packet = 25;
  std::vector<NfOptions> nfs{either(24, cost), either(80, cost), either(20, cost)};
  const Machine machine{.workers = 3, .sms = 8, .launch_packets = 2000, .launches_in_flight = 100, .rx_ns = 40};
  EXPECT_THAT(place(nfs, machine, for_nothing)->on_gpu, ElementsAre(false, true, false));
  for (NfOptions& nf : nfs) {
    nf.after_gpu_ns = 70;
    nf.host_alone_ns = 68;
  }
  const auto placed = place(nfs, machine, for_nothing);
  EXPECT_THAT(placed->on_gpu, ElementsAre(true, true, true));
  EXPECT_EQ(placed->chosen.limit, Limit::kRx);
}

TEST(Place, an_error_of_the_price_is_the_error) {
  const Status failure = absl::InvalidArgumentError("no plan");
  const auto price = [&failure](OnGpu const&) -> Result<std::vector<NfMoves>> { return failure; };
  EXPECT_EQ(place(std::vector{either(1, kQuick)}, {.workers = 1, .sms = 8}, price).status(), failure);
}

// ---- properties

class Chains {
 public:
  explicit Chains(std::uint32_t seed) : random_(seed) {}

  std::vector<NfOptions> nfs(std::size_t count) {
    std::vector<NfOptions> all;
    for (std::size_t i = 0; i < count; ++i) {
      NfOptions nf;
      const std::uint32_t kind = number(8);
      nf.where = kind == 0 ? Where::kCpu : kind == 1 ? Where::kGpu : Where::kEither;
      if (number(10) != 0) {
        nf.cpu_ns = up_to(600);
      }
      if (number(10) != 0) {
        nf.gpu =
            NfCost{{up_to(60'000), up_to(400)}, {up_to(9'000), up_to(3)}, up_to(20'000), 1 + number(2048), up_to(60)};
      }
      if (number(2) != 0) {
        nf.after_gpu_ns = nf.cpu_ns.value_or(100) + up_to(100);
        nf.host_alone_ns = (nf.gpu ? nf.gpu->cpu_ns_per_packet : 0) + up_to(60);
      }
      nf.latency_limit_ns = 2e4 + up_to(4e5);
      all.push_back(nf);
    }
    return all;
  }
  Machine machine() {
    return {.workers = 1 + number(8),
            .shards = 1 + number(3),
            .sms = number(12),
            .launch_packets = 64U << number(6),
            .launches_in_flight = 1 + number(4),
            .ends = 1 + number(3),
            .rx_ns = number(3) == 0 ? 0 : up_to(60),
            .tx_ns = number(3) == 0 ? 0 : up_to(30)};
  }
  double up_to(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }
  std::uint32_t number(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

 private:
  std::mt19937 random_;
};

bool may_go(NfOptions const& nf, Machine const& machine) {
  return nf.where == Where::kEither && machine.sms > 0 && nf.cpu_ns && nf.gpu;
}

/// What `keep` says of every placement that `nfs` allow.
template <typename Visit>
void for_each_placement(std::vector<NfOptions> const& nfs, Machine const& machine, Visit visit) {
  for (std::uint32_t set = 0; set < 1U << nfs.size(); ++set) {
    OnGpu on_gpu;
    bool is_allowed = true;
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      on_gpu.push_back((set >> i & 1U) != 0);
      const bool is_gpu_fixed = nfs[i].where == Where::kGpu;
      is_allowed = is_allowed && (on_gpu[i] ? is_gpu_fixed || may_go(nfs[i], machine) : !is_gpu_fixed);
    }
    if (is_allowed) {
      visit(on_gpu, estimate(nfs, machine, on_gpu, *cheaper_side_by_side(on_gpu)));
    }
  }
}

TEST(Place, an_nf_goes_where_it_is_faster_though_rx_is_slower_still) {
  const std::vector<NfOptions> nfs{either(50, kQuick)};
  const Machine machine{.workers = 20, .sms = 1, .launch_packets = 1000, .launches_in_flight = 3, .rx_ns = 100};
  const Result<PartitionPlacement> placed = place(nfs, machine, for_nothing);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->on_gpu, ElementsAre(true)) << "10 ns a packet there, 50 on the CPU";
  EXPECT_EQ(placed->chosen.limit, Limit::kRx);
  EXPECT_DOUBLE_EQ(placed->chosen.packets_per_s, 1e9 / 100);
  EXPECT_DOUBLE_EQ(placed->chosen.without_ends, 1e9 / 10);
}

TEST(Place, equals_the_best_of_all_placements_with_the_fewest_nfs_on_the_gpu) {
  Chains chains(11);
  std::size_t on_gpu = 0;
  std::size_t between = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<NfOptions> nfs = chains.nfs(1 + chains.number(6));
    const Machine machine = chains.machine();
    const auto placed = place(nfs, machine, cheaper_side_by_side);
    ASSERT_TRUE(placed.ok()) << placed.status();
    double best = -1;
    std::ptrdiff_t fewest = 0;
    for_each_placement(nfs, machine, [&](OnGpu const& candidate, Estimate const& achieved) {
      const std::ptrdiff_t count = std::count(candidate.begin(), candidate.end(), true);
      const double speed = achieved.without_ends;
      if (speed > best * (1 + 1e-8)) {
        best = speed;
        fewest = count;
      } else if (speed > best * (1 - 1e-8) || speed == best) {
        fewest = std::min(fewest, count);
      }
    });
    const std::ptrdiff_t count = std::count(placed->on_gpu.begin(), placed->on_gpu.end(), true);
    if (best < std::numeric_limits<double>::infinity()) {
      ASSERT_NEAR(placed->chosen.without_ends, best, best * 1e-8);
    } else {
      ASSERT_EQ(placed->chosen.without_ends, best);
    }
    ASSERT_EQ(count, fewest);
    const auto free = std::count_if(nfs.begin(), nfs.end(), [&](NfOptions const& nf) { return may_go(nf, machine); });
    on_gpu += count > 0 ? 1 : 0;
    between += free > 1 && placed->chosen.packets_per_s > placed->all_cpu.packets_per_s * 1.01 &&
                       placed->chosen.packets_per_s > placed->all_gpu.packets_per_s * 1.01
                   ? 1
                   : 0;
  }
  EXPECT_GT(on_gpu, 50U) << "the chains say something";
  EXPECT_GT(between, 20U) << "some are best divided";
}

TEST(Place, leaves_what_the_user_fixed_and_is_never_worse_than_all_on_either) {
  Chains chains(12);
  for (int round = 0; round < 200; ++round) {
    const std::vector<NfOptions> nfs = chains.nfs(1 + chains.number(16));  // beyond kMaxExhaustive, too
    const Machine machine = chains.machine();
    const auto placed = place(nfs, machine, cheaper_side_by_side);
    ASSERT_TRUE(placed.ok()) << placed.status();
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      if (nfs[i].where != Where::kEither) {
        ASSERT_EQ(placed->on_gpu[i], nfs[i].where == Where::kGpu);
        ASSERT_EQ(placed->reasons[i], Reason::kFixed);
      } else if (placed->on_gpu[i]) {
        ASSERT_TRUE(may_go(nfs[i], machine));
        ASSERT_EQ(placed->reasons[i], Reason::kFaster);
      }
      if (placed->otherwise[i]) {
        ASSERT_LE(placed->otherwise[i]->packets_per_s, placed->chosen.packets_per_s * (1 + 1e-8));
      }
    }
    ASSERT_GE(placed->chosen.packets_per_s, placed->all_cpu.packets_per_s * (1 - 1e-8));
    ASSERT_GE(placed->chosen.packets_per_s, placed->all_gpu.packets_per_s * (1 - 1e-8));
    std::uint32_t sms = 0;
    for (Share const& share : placed->chosen.shares) {
      sms += share.sms;
      ASSERT_LE(share.batch(), machine.launch_packets);
    }
    ASSERT_LE(sms, machine.sms);
  }
}

TEST(Place, a_better_machine_or_a_cheaper_nf_never_makes_a_chain_slower) {
  Chains chains(13);
  for (int round = 0; round < 300; ++round) {
    const std::vector<NfOptions> nfs = chains.nfs(1 + chains.number(5));
    const Machine machine = chains.machine();
    const double before = place(nfs, machine, cheaper_side_by_side)->chosen.packets_per_s;
    const auto not_slower = [&](std::vector<NfOptions> const& other_nfs, Machine const& other, const char* what) {
      const double after = place(other_nfs, other, cheaper_side_by_side)->chosen.packets_per_s;
      EXPECT_GE(after, before * (1 - 1e-8)) << what << ", round " << round;
    };
    Machine more = machine;
    more.workers += 1;
    not_slower(nfs, more, "workers");
    more = machine;
    more.shards += 1;
    not_slower(nfs, more, "shards");
    more = machine;
    more.sms += 1;
    not_slower(nfs, more, "SMs");
    more = machine;
    more.launches_in_flight += 1;
    not_slower(nfs, more, "launches in flight");
    more = machine;
    more.ends += 1;
    not_slower(nfs, more, "ends");
    more = machine;
    more.rx_ns *= 0.7;
    more.tx_ns *= 0.7;
    not_slower(nfs, more, "rx and tx");

    const std::size_t chosen = chains.number(static_cast<std::uint32_t>(nfs.size()));
    std::vector<NfOptions> cheaper = nfs;
    cheaper[chosen].latency_limit_ns *= 1.5;
    not_slower(cheaper, machine, "latency limit");
    if (nfs[chosen].cpu_ns) {
      cheaper = nfs;
      *cheaper[chosen].cpu_ns *= 0.7;
      not_slower(cheaper, machine, "CPU");
    }
    if (nfs[chosen].gpu) {
      cheaper = nfs;
      cheaper[chosen].gpu->kernel.slope *= 0.7;
      cheaper[chosen].gpu->overhead_ns *= 0.7;
      cheaper[chosen].gpu->cpu_ns_per_packet *= 0.7;
      not_slower(cheaper, machine, "kernel");
    }
    if (nfs[chosen].after_gpu_ns) {
      cheaper = nfs;
      *cheaper[chosen].after_gpu_ns *= 0.7;
      *cheaper[chosen].host_alone_ns *= 0.7;
      not_slower(cheaper, machine, "change of side");
    }
  }
}

}  // namespace
}  // namespace catena::share
