// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "plan/explain.hpp"
#include "plan/testing/chains.hpp"
#include "plan/testing/simulation.hpp"

namespace catena::plan {
namespace {

using packet::fields;
using packet::FieldSet;
using testing::chain_c;
using ::testing::HasSubstr;

constexpr Processor kC = Processor::kCpu;
constexpr Processor kG = Processor::kGpu;
constexpr FieldSet kRewritten = fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum, packet::kL4Sport,
                                       packet::kL4Dport, packet::kL4Checksum);

PlanInput input_of(std::vector<PlacedNf> nfs, std::uint32_t bytes = 1514) {
  PlanInput input;
  input.nfs = std::move(nfs);
  input.profile = PacketProfile::fixed(bytes);
  return input;
}

Plan plan_of(PlanInput const& input) {
  Result<Plan> plan = make_plan(input);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

GpuStep const& step_of(Plan const& plan, std::string_view name) {
  const auto found =
      std::find_if(plan.nfs.begin(), plan.nfs.end(), [&](PlannedNf const& nf) { return nf.name == name; });
  return found->step.value();
}

/// Calls `function` with AdaptChain's five chains, each with every placement.
template <typename Function>
void for_each_placement(Function const& function) {
  for (int number = 1; number <= 5; ++number) {
    std::vector<PlacedNf> nfs = chain_c(number);
    for (unsigned placement = 0; placement < 1U << nfs.size(); ++placement) {
      for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
        nfs[nf].on = (placement >> nf & 1U) != 0 ? kG : kC;
      }
      SCOPED_TRACE(::testing::Message() << "C" << number << ", placement " << placement);
      function(nfs);
    }
  }
}

// --- Known cases ----------------------------------------------------------------------------------------------------

PlanInput c1(std::uint32_t bytes) {
  return input_of({testing::firewall(kC), testing::encrypt(kG), testing::nids(kG)}, bytes);
}

// AdaptChain, section VI-B, names 49.1 % less to the device for C1 with frames of 1518 bytes, FCS included, and 13.9 %
// with 64. Its systems batch on the CPU; its IPsec encrypts and takes whole packets; its NIDS takes payloads with a
// 4-byte offset, or an 8-byte pointer.
TEST(KnownChains, C1MovesHalfOfWhatCopyMovesWithLongFramesAndLessWithShortOnes) {
  PlanInput input = c1(1514);
  input.costs.available = method_bit(TransferMethod::kStaged);
  Result<Comparison> plans = compare(input);
  ASSERT_TRUE(plans.ok());
  // encrypt: flag 1, aux 20, row 4; offset, length and layers 12; the frame in steps of 16, and where it is 8
  // nids: flag 1, extent 8; a payload of 1514 - 42
  constexpr double kCopy = 1 + 20 + 4 + 12 + 1520 + 8 + (1 + 8 + 1472);
  EXPECT_EQ(plans->copy.bytes_to_device, kCopy);
  // nids: flag, row, and the layers that encrypt left
  constexpr double kAdaptive = 1 + 20 + 4 + 12 + 1520 + 8 + (1 + 4 + 8);
  EXPECT_EQ(plans->adaptive.bytes_to_device, kAdaptive);
  EXPECT_NEAR(1 - kAdaptive / kCopy, 0.491, 0.015);

  input.profile = PacketProfile::fixed(60);
  plans = compare(input);
  ASSERT_TRUE(plans.ok());
  EXPECT_EQ(plans->copy.bytes_to_device, 1 + 20 + 4 + 12 + 64 + 8 + (1 + 8 + 32));
  EXPECT_EQ(plans->adaptive.bytes_to_device, 1 + 20 + 4 + 12 + 64 + 8 + (1 + 4 + 8));
}

TEST(KnownChains, CopyTakesTheMethodsThatItMay) {
  const Result<Comparison> plans = compare(c1(1514));
  ASSERT_TRUE(plans.ok());
  // Kernels write their flags into the host's memory. A 2-D copy of whole frames is faster than a kernel that gathers
  // payloads, so nids gets the frame, too.
  EXPECT_EQ(plans->copy.bytes_to_device, 20 + 4 + 12 + 1514 + (4 + 12 + 1514));
  EXPECT_EQ(plans->adaptive.bytes_to_device, 20 + 4 + 12 + 1514 + (4 + 8));
  for (PlannedNf const& nf : plans->copy.nfs) {
    EXPECT_TRUE(!nf.step || nf.step->shared) << nf.name;
  }
}

TEST(KnownChains, FlagsGoToTheDeviceWhereItsKernelsDoNotReachTheHostsMemory) {
  PlanInput input = input_of({testing::firewall(kC), testing::encrypt(kG), testing::nids(kG)}, 60);
  input.costs.available = kAllMethods & static_cast<MethodSet>(~method_bit(TransferMethod::kGather));
  const Result<Comparison> plans = compare(input);
  ASSERT_TRUE(plans.ok());
  EXPECT_EQ(plans->adaptive.bytes_to_device, 1 + 20 + 4 + 12 + 60 + (1 + 4 + 8));
}

// AdaptChain, figure 5(b): after a NIDS that has moved the packets, and a CPU NF that rewrites addresses and ports,
// IPsec moves only these.
TEST(KnownChains, IpsecBehindNidsMovesOnlyWhatTheCpuHasRewritten) {
  const Plan plan = plan_of(input_of({testing::nids(kG), testing::lb(kC), testing::encrypt(kG)}));
  EXPECT_TRUE(packet::has_frame(step_of(plan, "nids").to_device));
  EXPECT_EQ(step_of(plan, "encrypt").to_device, kRewritten);
}

// The same with a NAT, which rewrites the payloads of ICMP errors and marks them.
TEST(KnownChains, IpsecBehindNidsAndNatMovesHeaderFieldsAndMarkedPayloadsOnly) {
  PlanInput input = input_of(chain_c(2));
  const GpuStep marked = step_of(plan_of(input), "encrypt");
  EXPECT_EQ(marked.to_device, kRewritten | fields(packet::kIcmpHeader));
  const Plan plan = plan_of(input);
  EXPECT_EQ(testing::simulate(input.nfs, plan), "");
  input.nfs[1].hints.prepare_writes_few = packet::kNoFields;
  const Plan whole = plan_of(input);
  EXPECT_TRUE(packet::has_frame(step_of(whole, "encrypt").to_device) ||
              packet::contains(step_of(whole, "encrypt").to_device, packet::kPayload));
  EXPECT_LT(plan.bytes_to_device, 0.55 * whole.bytes_to_device);
  // and the plan is wrong for a NAT that marks nothing
  EXPECT_NE(testing::simulate(input.nfs, plan), "");
}

TEST(KnownChains, MetadataIsStagedWhereHeaderFieldsAreGathered) {
  PlacedNf sets{.name = "sets"};
  sets.hints.cw = fields(packet::kIpv4Ttl, packet::kMetaPort);
  PlacedNf reads{.name = "reads", .on = kG};
  reads.hints.gr = fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload);
  const Plan plan = plan_of(input_of({testing::nids(kG), sets, reads}));
  std::vector<std::pair<FieldSet, TransferMethod>> columns;
  for (Move const& move : step_of(plan, "reads").moves) {
    if (move.kind == TransferShape::Kind::kColumns) {
      columns.emplace_back(move.fields, move.method);
    }
  }
  EXPECT_THAT(columns, ::testing::ElementsAre(::testing::Pair(fields(packet::kIpv4Ttl), TransferMethod::kGather),
                                              ::testing::Pair(fields(packet::kMetaPort), TransferMethod::kStaged)));
}

// Figure 4(a): a NIDS modifies nothing, so nothing comes back.
TEST(KnownChains, NothingComesBackFromAnNfThatWritesNothing) {
  for (const Mode mode : {Mode::kCopy, Mode::kShared, Mode::kAdaptive}) {
    PlanInput input = input_of({testing::nids(kG), testing::nat(kC)});
    input.mode = mode;
    const Plan plan = plan_of(input);
    if (mode != Mode::kShared) {
      EXPECT_EQ(step_of(plan, "nids").to_host, packet::kNoFields);
    }
  }
}

// Figure 6(a): the firewall moves whole packets for IPsec and NIDS, if it may and they are short.
TEST(KnownChains, TransfersArePushedDownToTheFirewall) {
  PlanInput input = input_of(chain_c(4), 60);
  const Plan pushed = plan_of(input);
  EXPECT_TRUE(packet::has_frame(step_of(pushed, "firewall").to_device));
  input.pushdown = false;
  const Plan not_pushed = plan_of(input);
  EXPECT_FALSE(packet::has_frame(step_of(not_pushed, "firewall").to_device));
  EXPECT_LT(pushed.bytes_to_device, not_pushed.bytes_to_device);
  EXPECT_LT(pushed.cost_ns, not_pushed.cost_ns);
}

TEST(KnownChains, CopyTakesWhatIsReadAndBringsBackWhatIsWritten) {
  PlanInput input = input_of({testing::firewall(kG), testing::router(kG)});
  input.mode = Mode::kCopy;
  input.costs.available = method_bit(TransferMethod::kStaged);
  const Plan plan = plan_of(input);
  for (PlacedNf const& nf : input.nfs) {
    GpuStep const& step = step_of(plan, nf.name);
    EXPECT_FALSE(step.shared);
    EXPECT_EQ(step.to_device, nf.hints.gr);
    EXPECT_EQ(step.to_host, nf.hints.gw);
    EXPECT_EQ(step.from_columns, nf.hints.gr);
    EXPECT_EQ(step.to_columns, nf.hints.gw);
    EXPECT_EQ(step.from_shared | step.to_shared, packet::kNoFields);
    EXPECT_TRUE(std::all_of(step.moves.begin(), step.moves.end(),
                            [](Move const& move) { return move.method == TransferMethod::kStaged; }));
  }
}

TEST(KnownChains, AChainOnTheCpuMovesNothing) {
  const Plan plan = plan_of(input_of({testing::firewall(kC), testing::nat(kC)}));
  EXPECT_FALSE(plan.nfs[0].step || plan.nfs[1].step);
  EXPECT_EQ(plan.cost_ns + plan.bytes_to_device + plan.bytes_to_host, 0);
  EXPECT_TRUE(plan_of(input_of({})).nfs.empty());
}

// --- Every placement of C1 to C5 ------------------------------------------------------------------------------------

TEST(EveryPlacement, AdaptiveNeverCostsMoreThanOtherModesNorPushdownMoreThanNone) {
  for_each_placement([](std::vector<PlacedNf> const& nfs) {
    for (const std::uint32_t bytes : {60U, 124U, 252U, 508U, 1020U, 1514U}) {
      PlanInput input = input_of(nfs, bytes);
      const Result<Comparison> plans = compare(input);
      ASSERT_TRUE(plans.ok()) << plans.status();
      input.pushdown = false;
      const double without = plan_of(input).cost_ns;
      EXPECT_LE(plans->adaptive.cost_ns, without);
      EXPECT_LE(without, plans->copy.cost_ns);
      EXPECT_LE(without, plans->shared.cost_ns);
    }
  });
}

TEST(EveryPlacement, StepsAddUpAndTheKernelFindsEachFieldInOnePlace) {
  for_each_placement([](std::vector<PlacedNf> const& nfs) {
    for (const Mode mode : {Mode::kCopy, Mode::kShared, Mode::kAdaptive}) {
      PlanInput input = input_of(nfs, 124);
      input.mode = mode;
      const Plan plan = plan_of(input);
      double ns = 0;
      for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
        ASSERT_EQ(plan.nfs[nf].step.has_value(), nfs[nf].on == kG);
        if (!plan.nfs[nf].step) {
          continue;
        }
        GpuStep const& step = *plan.nfs[nf].step;
        Hints const& hints = nfs[nf].hints;
        EXPECT_EQ(hints.gr & ~(step.from_columns | step.from_shared), packet::kNoFields);
        EXPECT_EQ(step.from_columns & step.from_shared, packet::kNoFields);
        EXPECT_EQ(hints.gw & ~(step.to_columns | step.to_shared), packet::kNoFields);
        EXPECT_EQ((step.to_columns | step.from_columns) & ~(step.to_host | step.to_device), packet::kNoFields);
        for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
          FieldSet moved = packet::kNoFields;
          for (Move const& move : step.moves) {
            moved |= move.direction == direction ? move.fields : packet::kNoFields;
          }
          EXPECT_EQ(moved, direction == Direction::kToDevice ? step.to_device : step.to_host);
          FieldSet explained = packet::kNoFields;
          for (Reason const& reason : step.reasons) {
            explained |= reason.direction == direction && is_moved(reason.kind) ? reason.fields : packet::kNoFields;
          }
          EXPECT_EQ(explained, moved);
        }
        ns += step.cost_ns;
      }
      EXPECT_DOUBLE_EQ(plan.cost_ns, ns);
    }
  });
}

bool is_explained(GpuStep const& step, Direction direction, std::uint32_t field, ReasonKind kind) {
  return std::any_of(step.reasons.begin(), step.reasons.end(), [&](Reason const& reason) {
    return reason.direction == direction && reason.kind == kind && (reason.fields >> field & 1U) != 0;
  });
}

/// What the shared buffer holds when the kernel of `nf` is about to run, without what its own step moves.
FieldSet on_device_before(std::span<const PlacedNf> nfs, Plan const& plan, std::size_t nf) {
  const std::vector<Movement> movements = testing::movements_of(plan);
  testing::Simulation simulation(nfs);
  for (std::size_t at = 0; at < nf; ++at) {
    simulation.work(at, nfs[at].on == kG ? &movements[at] : nullptr);
  }
  simulation.prepare(nf);
  return simulation.valid_on_device();
}

// Takes one field out of one move. The simulation must notice, unless the field travelled only as a part of a packet:
// it was there already, or nobody uses it there before it is moved again. What a kernel reads is missed unless it was
// there already.
TEST(EveryPlacement, NoFieldThatMovesForItsOwnSakeCanStay) {
  int removed = 0;
  int harmless = 0;
  for_each_placement([&](std::vector<PlacedNf> const& nfs) {
    for (const Mode mode : {Mode::kCopy, Mode::kShared, Mode::kAdaptive}) {
      PlanInput input = input_of(nfs, 124);
      input.mode = mode;
      const Plan plan = plan_of(input);
      std::vector<Movement> movements = testing::movements_of(plan);
      for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
        for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
          FieldSet& set = direction == Direction::kToDevice ? movements[nf].to_device : movements[nf].to_host;
          const FieldSet all = set;
          for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
            if ((all >> field & 1U) == 0) {
              continue;
            }
            set = all & ~(FieldSet{1} << field);
            ++removed;
            if (testing::simulate(nfs, movements).empty()) {
              ++harmless;
              EXPECT_TRUE(is_explained(*plan.nfs[nf].step, direction, field, ReasonKind::kWithPacket))
                  << to_string(mode) << " " << nfs[nf].name << " " << to_string(direction) << " field " << field;
              if (direction == Direction::kToDevice && (nfs[nf].hints.gr >> field & 1U) != 0) {
                EXPECT_NE(on_device_before(nfs, plan, nf) >> field & 1U, 0U);
              }
            }
            set = all;
          }
        }
      }
    }
  });
  EXPECT_GT(removed, 1000);
  EXPECT_LT(harmless, removed / 4);
}

// --- Limits and errors ----------------------------------------------------------------------------------------------

// Planning takes well below a microsecond a node, so this bound keeps 10 NFs below 1 ms; bench/plan_bench measures it.
TEST(Planner, VisitsFewNodesForTenNfs) {
  PlanInput input = input_of({testing::firewall(kG), testing::decrypt(kG), testing::nids(kG), testing::lb(kG),
                              testing::nat(kG), testing::monitor(kG), testing::router(kG), testing::firewall(kG),
                              testing::encrypt(kG), testing::nids(kG)});
  for (const std::uint32_t bytes : {60U, 508U, 1514U}) {
    input.profile = PacketProfile::fixed(bytes);
    EXPECT_LT(plan_of(input).visited, 1000U);
  }
}

TEST(Planner, VisitsFewNodesForTenNfsOnSixPaths) {
  // rx -> 0 -> {1 -> 2, 3, copy to 4} -> 5 -> {6, 7 -> 8} -> 9 -> tx: two ways twice, and the copy's two
  PlanInput input =
      input_of({testing::firewall(kG), testing::decrypt(kG), testing::nids(kG), testing::lb(kG), testing::monitor(kG),
                testing::router(kG), testing::nat(kG), testing::firewall(kG), testing::encrypt(kG), testing::nids(kG)});
  input.edges = {{kRx, 0}, {0, 1}, {1, 2}, {0, 3}, {0, 4, true}, {2, 5}, {3, 5},
                 {4, 5},   {5, 6}, {5, 7}, {7, 8}, {6, 9},       {8, 9}, {9, kTx}};
  for (const std::uint32_t bytes : {60U, 508U, 1514U}) {
    input.profile = PacketProfile::fixed(bytes);
    for (const Mode mode : {Mode::kCopy, Mode::kShared, Mode::kAdaptive}) {
      input.mode = mode;
      EXPECT_LT(plan_of(input).visited, 5000U);
    }
  }
}

TEST(Planner, TakesTheWeakerClaimWherePathsMeet) {
  // a router on the gpu rewrites on one way only: what it leaves on the device alone must be back where ways meet
  PlanInput input = input_of({testing::firewall(kG), testing::router(kG), testing::nids(kG)});
  input.edges = {{kRx, 0}, {0, 1}, {0, 2}, {1, 2}, {2, kTx}};
  const Plan plan = plan_of(input);
  const auto written = packet::fields(packet::kIpv4Ttl, packet::kMetaPort);
  EXPECT_EQ(plan.nfs[1].step->to_host & written, written);
  input.edges.clear();
  EXPECT_NE(plan_of(input).nfs[1].step->to_host & written, written) << "in a row the last step may bring it back";
}

TEST(Planner, RefusesLinksThatCannotBe) {
  PlanInput input = input_of({testing::firewall(kG), testing::nids(kG)});
  for (std::vector<PlanEdge> const& edges : std::vector<std::vector<PlanEdge>>{
           {{kRx, 0}, {0, 1}, {1, 0}}, {{kRx, 0}, {0, 0}, {0, 1}}, {{kRx, 0}, {0, 5}}, {{kRx, 0}, {7, 1}}}) {
    input.edges = edges;
    EXPECT_TRUE(absl::IsInvalidArgument(make_plan(input).status())) << make_plan(input).status();
  }
  input.edges = {{kRx, 0}, {0, kTx}};
  EXPECT_THAT(std::string(make_plan(input).status().message()), ::testing::HasSubstr("NF nids: no packet comes to it"));
}

/// Everything that a plan says: moves with methods, bytes and costs, places, reasons.
std::string all_of(Plan const& plan) { return explain(plan) + "visited " + std::to_string(plan.visited); }

TEST(Planner, IsDeterministic) {
  // ties are where an order that depends on addresses, or a value that nobody set, would show
  CostModel free_of_charge;
  free_of_charge.packets_per_transfer = 1;
  for (CostModel const& costs : {CostModel::h200(), free_of_charge}) {
    for (const Mode mode : {Mode::kCopy, Mode::kShared, Mode::kAdaptive}) {
      std::vector<std::vector<std::uint8_t>> between;
      for_each_placement([&](std::vector<PlacedNf> const& nfs) {
        PlanInput input = input_of(nfs, 252);
        input.costs = costs;
        input.mode = mode;
        const std::string first = all_of(plan_of(input));
        // other plans and other memory in between, and another stack
        between.emplace_back(between.size() * 37 % 5000, std::uint8_t{0xA5});
        plan_of(input_of(chain_c(5), 60));
        std::string second;
        std::thread([&] { second = all_of(plan_of(input)); }).join();
        EXPECT_EQ(first, second);
      });
    }
  }
}

TEST(Planner, TakesTheFirstOfPlansThatCostTheSame) {
  CostModel free_of_charge;
  free_of_charge.packets_per_transfer = 1;
  PlanInput input = input_of({testing::firewall(kG), testing::nids(kG)});
  input.costs = free_of_charge;
  // the first row of the tables that is right: whole packets to the shared buffer, and what is needed back
  const Plan plan = plan_of(input);
  EXPECT_TRUE(step_of(plan, plan.nfs[0].name).shared);
  EXPECT_TRUE(packet::has_frame(step_of(plan, plan.nfs[0].name).to_device));
  EXPECT_EQ(step_of(plan, plan.nfs[0].name).to_host, packet::kNoFields);
  EXPECT_EQ(step_of(plan, plan.nfs[1].name).to_device & packet::kFrameFields, packet::kNoFields);
}

std::string error_of(PlanInput const& input) {
  const Result<Plan> plan = make_plan(input);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(compare(input).status(), plan.status());
  return std::string(plan.status().message());
}

TEST(Planner, PlansAsManyNfsAsItSays) {
  PlanInput input = input_of(std::vector<PlacedNf>(kMaxNfs, testing::firewall(kG)));
  EXPECT_TRUE(make_plan(input).ok());
  input.nfs.push_back(testing::firewall(kG));
  EXPECT_THAT(error_of(input), HasSubstr("a chain of 65 NFs; at most 64"));
}

TEST(Planner, RoomsAreLimited) {
  for (std::uint32_t PlacedNf::*member :
       {&PlacedNf::aux_bytes, &PlacedNf::result_bytes, &PlacedNf::headroom, &PlacedNf::tailroom}) {
    PlanInput input = input_of({testing::firewall(kG), testing::nids(kG)});
    input.nfs[1].*member = 65536;
    EXPECT_TRUE(make_plan(input).ok());
    input.nfs[1].*member = 65537;
    EXPECT_THAT(error_of(input), HasSubstr("NF nids: 65537 bytes per packet; at most 65536"));
  }
}

TEST(Planner, OnlyPayloadsAreWrittenInFewPackets) {
  PlanInput input = input_of(chain_c(2));
  input.nfs[1].hints.prepare_writes_few |= fields(packet::kIpv4Src);
  EXPECT_THAT(error_of(input), HasSubstr("NF nat: prepare_writes_few"));
  input.nfs[1].hints.prepare_writes_few = fields(packet::kPayload);
  input.nfs[1].hints.prepare_writes &= ~fields(packet::kPayload);
  EXPECT_THAT(error_of(input), HasSubstr("NF nat: prepare_writes_few"));
}

TEST(Planner, GrowthMustBeANumber) {
  for (const double growth : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    PlanInput input = input_of(chain_c(4));
    input.nfs[1].grows_by = growth;
    EXPECT_THAT(error_of(input), HasSubstr("NF decrypt: grows_by"));
  }
}

TEST(Planner, ATransferMovesPackets) {
  PlanInput input = input_of(chain_c(1));
  input.costs.packets_per_transfer = 0;
  EXPECT_THAT(error_of(input), HasSubstr("packets_per_transfer"));
}

}  // namespace
}  // namespace catena::plan
