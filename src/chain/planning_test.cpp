// SPDX-License-Identifier: Apache-2.0
#include "chain/planning.hpp"

#include "chain/ports/generator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include "gpu/copy/methods.hpp"

namespace catena::chain {
namespace {

using packet::fields;
using ::testing::ElementsAre;

TEST(ProfileOf, a_generator_is_its_packet_size) {
  EXPECT_EQ(profile_of(generated({.packet_bytes = 508}))->average_bytes(), 508);
}

TEST(ProfileOf, a_replay_is_its_list_of_sizes) {
  const auto chain = parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n"
      "  rx: {replay: {packet: [60, 60, 60, 1020]}}\n  tx: null\n  nfs: []\n",
      "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  PortConfig const& rx = chain->rx;
  EXPECT_EQ(profile_of(rx)->average_bytes(), 300);
  EXPECT_EQ(profile_of(rx)->longest_bytes(), 1020U);
}

TEST(ProfileOf, a_capture_is_its_first_frames) {
  PortConfig rx = *parse_rx_option("pcap:" + source_path("examples/branch-office.pcap"));
  const Result<plan::PacketProfile> profile = profile_of(rx);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_NEAR(profile->average_bytes(), 595.76, 0.01) << "as capinfos -z says";
  EXPECT_GT(profile->header_bytes(), 14 + 20 + 8);
  EXPECT_LT(profile->header_bytes(), 14 + 20 + 60);

  rx.target = "/not/there.pcap";
  EXPECT_TRUE(absl::IsNotFound(profile_of(rx).status()));
}

plan::PlacedNf nf_on(plan::Processor on, plan::Hints const& hints) {
  plan::PlacedNf nf;
  nf.on = on;
  nf.hints = hints;
  return nf;
}

TEST(OnlyOnDevice, has_what_a_step_keeps_of_its_writes) {
  constexpr plan::Processor kGpu = plan::Processor::kGpu;
  plan::Hints writes_ttl;
  writes_ttl.gw = fields(packet::kIpv4Ttl);
  plan::Hints reads;
  reads.gr = fields(packet::kIpv4Ttl);
  const std::vector<plan::PlacedNf> nfs{nf_on(kGpu, writes_ttl), nf_on(kGpu, reads), nf_on(kGpu, reads),
                                        nf_on(plan::Processor::kCpu, {})};
  plan::Plan plan;
  plan::GpuStep keeps;
  keeps.shared = true;
  plan::GpuStep brings = keeps;
  brings.to_host = fields(packet::kIpv4Ttl);
  plan.nfs = {{"a", kGpu, keeps}, {"b", kGpu, brings}, {"c", kGpu, keeps}, {"d", plan::Processor::kCpu, {}}};
  EXPECT_THAT(only_on_device({.nfs = nfs}, plan), ElementsAre(0, fields(packet::kIpv4Ttl), 0, 0));
}

TEST(OnlyOnDevice, has_no_field_that_was_overwritten) {
  plan::Hints writes_port;
  writes_port.gw = fields(packet::kMetaPort);
  plan::Hints sets_port;
  sets_port.cw = fields(packet::kMetaPort);
  const std::vector<plan::PlacedNf> nfs{nf_on(plan::Processor::kGpu, writes_port),
                                        nf_on(plan::Processor::kCpu, sets_port), nf_on(plan::Processor::kCpu, {})};
  plan::Plan plan;
  plan::GpuStep keeps;
  keeps.shared = true;
  plan.nfs = {{"a", plan::Processor::kGpu, keeps}, {"b", plan::Processor::kCpu, {}}, {"c", plan::Processor::kCpu, {}}};
  EXPECT_THAT(only_on_device({.nfs = nfs}, plan), ElementsAre(0, fields(packet::kMetaPort), 0));
}

TEST(SharedStep, takes_the_method_of_header_fields_where_metadata_is_staged) {
  plan::GpuStep step;
  step.shared = true;
  step.to_device = fields(packet::kIpv4Ttl, packet::kMetaPort);
  step.moves = {{Direction::kToDevice,
                 plan::TransferShape::Kind::kColumns,
                 TransferMethod::kGather,
                 fields(packet::kIpv4Ttl),
                 {}},
                {Direction::kToDevice,
                 plan::TransferShape::Kind::kColumns,
                 TransferMethod::kStaged,
                 fields(packet::kMetaPort),
                 {}}};
  EXPECT_EQ(shared_step(step)->columns_in, TransferMethod::kGather);
}

/// Lets frames grow; does nothing else.
class Growing final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {}; }
  double grows_by() const override { return 7.5; }
  void compute(packet::Batch const&, std::span<const std::byte>, std::span<std::byte>) override {}
  void complete(nf::Completion const& /*completion*/) override {}
};

TEST(AddNf, tells_the_planner_by_how_much_frames_grow) {
  nf::Descriptor descriptor;
  descriptor.type = "growing";
  nf::Instance instance("a", descriptor, std::make_unique<Growing>(), nf::OnUnsupported::kPass, false);
  const NfConfig entry{"a", "growing", plan::Processor::kCpu, {}, {}, *nf::Config::parse("{}", "x"), ""};
  plan::PlanInput input;
  ASSERT_TRUE(add_nf(entry, instance, input).ok());
  EXPECT_EQ(input.nfs.at(0).grows_by, 7.5);
}

TEST(SharedStep, takes_the_methods_of_its_moves) {
  plan::GpuStep step;
  EXPECT_FALSE(shared_step(step).has_value()) << "direct step";
  step.shared = true;
  step.to_device = packet::kFrameFields;
  step.to_host = fields(packet::kIpv4Ttl);
  step.moves = {{Direction::kToDevice, plan::TransferShape::Kind::kBody, TransferMethod::kStrided, step.to_device, {}},
                {Direction::kToHost, plan::TransferShape::Kind::kColumns, TransferMethod::kGather, step.to_host, {}}};
  const auto result = shared_step(step);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->to_device, step.to_device);
  EXPECT_EQ(result->to_host, step.to_host);
  EXPECT_EQ(result->body_in, TransferMethod::kStrided);
  EXPECT_EQ(result->columns_out, TransferMethod::kGather);
  EXPECT_EQ(result->columns_in, TransferMethod::kStaged);
}

TEST(TransferMethods, are_the_same_in_plans_and_launches) {
  plan::TransferShape payloads{.kind = plan::TransferShape::Kind::kBody, .between_slots = true};
  plan::TransferShape fields{
      .kind = plan::TransferShape::Kind::kColumns, .touches_packet = true, .between_slots = true};
  for (const TransferMethod method : kTransferMethods) {
    SCOPED_TRACE(to_string(method));
    copy::MethodMover const& mover = copy::mover_of(method);
    for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
      EXPECT_EQ(mover.make(direction)->method(), method);
    }
    EXPECT_EQ(plan::CostModel::can_carry(method, payloads), mover.carries_payloads);
    EXPECT_EQ(plan::CostModel::can_carry(method, fields), kernel_path(method) != KernelPath::kNone)
        << "kernels move header fields";
    EXPECT_EQ(mover.enqueue != nullptr, kernel_path(method) == KernelPath::kNone);
  }
}

}  // namespace
}  // namespace catena::chain
