// SPDX-License-Identifier: Apache-2.0
#include "plan/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/chains.hpp"

namespace catena::plan {
namespace {

using packet::fields;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

PlanInput nids_lb_ipsec() {
  PlanInput input;
  input.nfs = {testing::nids(Processor::kGpu), testing::lb(Processor::kCpu), testing::encrypt(Processor::kGpu)};
  return input;
}

TEST(Explain, FieldSetsAreNamesOfTheTable) {
  EXPECT_EQ(describe(packet::kNoFields), "none");
  EXPECT_EQ(describe(fields(packet::kIpv4Src, packet::kL4Dport)), "ipv4.src, l4.dport");
  EXPECT_EQ(describe(packet::kFrameFields), "frame");
  EXPECT_EQ(describe(packet::kFrameFields | fields(packet::kMetaLayers)), "frame, meta.layers");
}

TEST(Explain, SaysWhyFieldsMoveAndWhyTheyStay) {
  const Result<Plan> plan = make_plan(nids_lb_ipsec());
  ASSERT_TRUE(plan.ok());
  const std::string text = explain(*plan);
  EXPECT_THAT(text, HasSubstr("nids: shared step\n"));
  EXPECT_THAT(text, HasSubstr("lb: on the CPU\n"));
  EXPECT_THAT(text, ContainsRegex("h2d  body +strided +1514.0 B .* frame\n"));
  EXPECT_THAT(text, HasSubstr("read on the device by encrypt, moved early with the packet"));
  EXPECT_THAT(text, HasSubstr("h2d  moved  ipv4.checksum, ipv4.src, ipv4.dst, l4.sport, l4.dport, l4.checksum: the "
                              "kernel needs it"));
  EXPECT_THAT(text, ContainsRegex("h2d  stays  .*payload.*: valid on the device since nids"));
  EXPECT_THAT(text, HasSubstr("d2h  moved  frame, meta.length, meta.offset: read on the CPU by tx"));
  EXPECT_THAT(text, ContainsRegex("a packet  adaptive .* B to the device .* B to the host .* ns"));
}

TEST(Explain, ComparisonNamesTheSavings) {
  PlanInput input = nids_lb_ipsec();
  const Result<Comparison> plans = compare(input);
  ASSERT_TRUE(plans.ok());
  const std::string text = explain(*plans);
  EXPECT_THAT(text, HasSubstr(explain(plans->adaptive)));
  EXPECT_THAT(text, ContainsRegex("against copy .* % fewer bytes to the device"));
  EXPECT_THAT(text, ContainsRegex("against shared .* % less time"));
}

TEST(Explain, DirectUseBringsBackWhatWasWritten) {
  PlanInput input;
  input.nfs = {testing::router(Processor::kGpu)};
  input.mode = Mode::kCopy;
  input.costs.available = method_bit(TransferMethod::kStaged);
  const Result<Plan> plan = make_plan(input);
  ASSERT_TRUE(plan.ok());
  const std::string text = explain(*plan);
  EXPECT_THAT(text, HasSubstr("router: direct step\n"));
  EXPECT_THAT(text, HasSubstr("kernel reads from columns: ipv4.ttl, ipv4.checksum, ipv4.dst\n"));
  EXPECT_THAT(text, HasSubstr("d2h  moved  ipv4.ttl, ipv4.checksum, meta.port: the kernel wrote it and keeps nothing"));
  EXPECT_THAT(text, Not(HasSubstr("shared buffer")));
}

TEST(Explain, ReasonsThatNobodyReadsAField) {
  const std::vector<PlannedNf> nfs{{"a", Processor::kGpu, {}}, {"b", Processor::kGpu, {}}};
  EXPECT_EQ(describe({Direction::kToHost, ReasonKind::kNoHostReader, 1, 1}, nfs), "not read on the CPU before b");
  EXPECT_EQ(describe({Direction::kToHost, ReasonKind::kHostReads, 1, kTx}, nfs), "read on the CPU by tx");
}

}  // namespace
}  // namespace catena::plan
