// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/gnet.hpp"

#include "bench/common/results.hpp"
#include "bench/common/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace catena::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Gnet : public testing::PartTest {
 protected:
  /// One chain and one size on OpenCL, in short runs.
  Gnet() {
    told_.quick = true;
    told_.settings = {{"device", "opencl"}, {"chains", "S_a"}, {"sizes", "256"}};
  }
  const Part part_ = gnet_part();
};

std::vector<std::string> modes_of(Json const& repeat) {
  std::vector<std::string> modes;
  for (auto const& [mode, values] : repeat.items()) {
    modes.push_back(mode);
  }
  return modes;
}

TEST_F(Gnet, measures_every_way_to_share_and_compares_what_leaves) {
  const Result<Results> results = run(part_);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->failed_cells(), 0U) << ::testing::PrintToString(lines_);
  EXPECT_GT(results->samples_compared(), 0U);
  EXPECT_EQ(results->samples_different(), 0U);
  EXPECT_THAT(results->find_all({{"group", "growing"}}), SizeIs(4));
  EXPECT_THAT(results->find_all({{"group", "nfs"}}), SizeIs(4)) << "firewall, IPsec, NIDS and router";
  for (Json const& cell : results->find_all({{"group", "growing"}})) {
    std::vector<double> times;
    for (Json const& point : cell.at("latency_cdf").at("scheduled")) {
      times.push_back(point.at(0).get<double>());
    }
    EXPECT_TRUE(std::ranges::is_sorted(times));
  }
  for (const char* group : {"throughput", "latency"}) {
    const std::vector<Json> cells = results->find_all({{"group", group}});
    ASSERT_THAT(cells, SizeIs(1));
    ASSERT_THAT(cells[0].at("repeats"), SizeIs(1));
    EXPECT_THAT(modes_of(cells[0].at("repeats")[0]), ElementsAre("scheduled", "fair", "uncoordinated", "temporal"));
    for (auto const& [mode, parts] : cells[0].at("parts").items()) {
      EXPECT_THAT(parts, SizeIs(2)) << mode;
    }
    Json const& fair = cells[0].at("repeats")[0].at("fair");
    EXPECT_GT(fair.at("packets_per_s"), 0);
    EXPECT_GT(fair.at("cores"), 0);
    EXPECT_GT(fair.at("process_cores"), 0);
    for (Json const& part : cells[0].at("parts").at("fair")) {
      EXPECT_GT(part.at("predicted_per_s"), 0) << part;
    }
  }
  EXPECT_EQ(file(), results->to_json());
}

TEST_F(Gnet, goes_on_with_what_was_measured_and_measures_nfs_again) {
  told_.settings["groups"] = "throughput";
  told_.settings["profile_seconds"] = "0.5";
  const Result<Results> first = run(part_);
  ASSERT_TRUE(first.ok()) << first.status();
  told_.resume = true;
  told_.settings["sizes"] = "256,128";
  const Result<Results> second = run(part_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second->find({{"group", "throughput"}, {"wire_bytes", 256}}),
            *first->find({{"group", "throughput"}, {"wire_bytes", 256}}));
  EXPECT_EQ(second->find({{"group", "throughput"}, {"wire_bytes", 128}})->at("run"), 1);
  EXPECT_EQ(second->find({{"group", "nfs"}, {"wire_bytes", 256}})->at("run"), 1);
  told_.settings["tuning"] = "pool_slots: 32768";
  EXPECT_TRUE(absl::IsFailedPrecondition(run(part_).status()));
}

TEST_F(Gnet, refuses_what_it_cannot_do) {
  EXPECT_THAT(refused(part_, "device", "none"), HasSubstr("allowed: auto, cuda, opencl"));
  EXPECT_THAT(refused(part_, "chains", "S_e"), HasSubstr("allowed: S_a, S_b, S_c, S_d"));
  EXPECT_THAT(refused(part_, "groups", "growth"), HasSubstr("allowed: throughput, latency, growing"));
  EXPECT_THAT(refused(part_, "sizes", "9000"), HasSubstr("64 to 1518"));
}

}  // namespace
}  // namespace catena::bench
