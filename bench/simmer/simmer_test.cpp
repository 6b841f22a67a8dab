// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/simmer.hpp"

#include "bench/common/results.hpp"
#include "bench/common/testing.hpp"
#include "bench/simmer/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::bench {
namespace {

using chain::FlowMode;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

class Simmer : public testing::PartTest {
 protected:
  /// On OpenCL, in short runs.
  Simmer() {
    told_.quick = true;
    told_.settings = {{"device", "opencl"}};
  }
  const Part part_ = simmer_part();
};

double sum_over_nfs(Json const& flow, const char* value) {
  double sum = 0;
  for (Json const& nf : flow.at("nfs")) {
    sum += nf.at(value).get<double>();
  }
  return sum;
}

TEST_F(Simmer, loses_nothing_inside_with_back_pressure_and_something_without) {
  told_.settings["groups"] = "sizes,long";
  const Result<Results> results = run(part_);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->failed_cells(), 0U) << results->to_json().dump(1);
  EXPECT_THAT(results->find_all({{"group", "alone"}}), SizeIs(1)) << "what the first NF does, for the loads";
  const std::vector<Json> cells = results->find_all({{"group", "sizes"}});
  ASSERT_THAT(cells, SizeIs(2));
  double lost = 0;
  for (Json const& cell : cells) {
    ASSERT_THAT(cell.at("repeats"), SizeIs(1));
    Json const& repeat = cell.at("repeats")[0];
    EXPECT_EQ(sum_over_nfs(repeat.at("back-pressure"), "drops_per_s"), 0);
    lost += sum_over_nfs(repeat.at("vanilla"), "drops_per_s");
    for (auto const& [way, flow] : repeat.items()) {
      EXPECT_GT(sum_over_nfs(flow, "launches_per_s"), 0) << "of NFs in other processes, " << way;
    }
  }
  EXPECT_GT(lost, 0) << "more than the chains can do is offered";
  EXPECT_THAT(results->find_all({{"group", "long"}}), SizeIs(1));
  EXPECT_EQ(file(), results->to_json());

  told_.resume = true;
  lines_.clear();
  const Result<Results> again = run(part_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->to_json().at("cells").get<std::vector<Json>>(),
              UnorderedElementsAreArray(results->to_json().at("cells").get<std::vector<Json>>()));
  EXPECT_THAT(lines_, SizeIs(2)) << "two lists are kept, and nothing is measured, the first NF alone neither";
}

TEST_F(Simmer, says_why_a_device_cannot_be_shared_in_a_way) {
  told_.settings["groups"] = "sharing";
  const Result<Results> results = run(part_);
  ASSERT_TRUE(results.ok()) << results.status();
  const Json cells = results->to_json().at("cells");
  std::size_t sharing = 0;
  for (Json const& cell : cells) {
    if (cell.at("group") == "sharing") {
      ++sharing;
      EXPECT_EQ(cell.contains("error"), cell.at("shared_as") == "partitioned") << cell.dump(1);
    }
  }
  EXPECT_EQ(sharing, 6U);
}

TEST(SimmerChains, are_what_the_paper_has) {
  SimmerSpec spec;
  spec.mode = FlowMode::kVanilla;
  spec.tuning = "pool_slots: 65536";
  for (SimmerChain const& chain : simmer_chains()) {
    spec.chain = &chain;
    const std::string text = simmer_text(spec, "opencl", {"a", "b", "c"});
    const Result<chain::ChainConfig> parsed = chain::parse_chain(text, "c.yaml");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->nfs.size(), 3U);
    EXPECT_EQ(parsed->graph.has_value(), chain.has_two_flows);
    EXPECT_EQ(parsed->flow.mode, FlowMode::kVanilla);
  }
}

TEST_F(Simmer, refuses_what_it_cannot_do) {
  EXPECT_THAT(refused(part_, "device", "none"), HasSubstr("allowed: auto, cuda, opencl"));
  EXPECT_THAT(refused(part_, "groups", "everything"),
              HasSubstr("allowed: alone, sizes, qt, dynamic, sharing, own, long"));
  EXPECT_THAT(refused(part_, "sizes", "1518"), HasSubstr("64 to 1472"));
  EXPECT_THAT(refused(part_, "qt", "0.5"), HasSubstr("1 to 1024"));
}

}  // namespace
}  // namespace catena::bench
