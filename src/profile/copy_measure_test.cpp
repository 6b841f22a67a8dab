// SPDX-License-Identifier: Apache-2.0
#include "profile/copy_measure.hpp"

#include <gtest/gtest.h>

namespace catena::profile {
namespace {

EngineCopies engine(std::string_view name, std::vector<double> const& cpu_ns, bool is_for_tests = false) {
  EngineCopies result{{.name = name, .probe = nullptr, .open = nullptr, .describe = "", .is_for_tests = is_for_tests},
                      absl::OkStatus(),
                      {}};
  std::uint32_t bytes = 1024;
  for (const double ns : cpu_ns) {
    result.points.push_back({bytes, ns, 1});
    bytes *= 4;
  }
  return result;
}

TEST(CopyMeasure, measures_the_engines_of_the_cpu) {
  const CopyMeasureOptions options{.sizes = {1024, 65536}, .seconds = 0.01, .memory_bytes = std::size_t{1} << 20U};
  const Result<std::vector<EngineCopies>> engines =
      measure_copies(hostcopy::engine_kinds(), options, [](std::string_view) {});
  ASSERT_TRUE(engines.ok()) << engines.status();
  for (EngineCopies const& measured : *engines) {
    ASSERT_EQ(measured.status, measured.kind.probe()) << measured.kind.name;
    ASSERT_EQ(measured.points.size(), measured.status.ok() ? 2U : 0U);
    for (chain::CopyPoint const& point : measured.points) {
      EXPECT_GT(point.cpu_ns, 0);
      EXPECT_GT(point.gbps, 0);
    }
  }
}

TEST(CopyMeasure, proposes_the_least_size_from_which_on_an_engine_is_cheaper_than_each_of_the_cpu) {
  const std::vector<EngineCopies> engines = {engine("cpu", {100, 400, 2000}), engine("cpu-stream", {200, 500, 1000}),
                                             engine("gpu", {600, 300, 500}), engine("dma", {50, 700, 900}),
                                             engine("fake", {1, 1, 1}, true)};
  const std::optional<ProposedThreshold> threshold = propose_threshold(engines);
  ASSERT_TRUE(threshold);
  EXPECT_EQ(threshold->engine, "gpu");
  EXPECT_EQ(threshold->bytes, 4096U);
}

TEST(CopyMeasure, proposes_nothing_where_the_cpu_is_the_cheapest) {
  EXPECT_FALSE(propose_threshold(std::vector{engine("cpu", {100, 400}), engine("gpu", {50, 500})}));
  EXPECT_FALSE(propose_threshold(std::vector{engine("cpu", {100, 400}), engine("fake", {1, 1}, true)}));
}

}  // namespace
}  // namespace catena::profile
