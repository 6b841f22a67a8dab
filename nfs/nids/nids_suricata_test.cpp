// SPDX-License-Identifier: Apache-2.0
// Alerts that Suricata 7.0.10 raised on the same rules and packets are the oracle here.
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace catena::nids {
namespace {

using namespace testing;

struct Case {
  std::string name;
  std::size_t frames_with_alerts;  ///< at least
};

class SuricataCases : public ::testing::TestWithParam<Case> {};

TEST_P(SuricataCases, same_alerts_on_every_place) {
  auto const& [name, frames_with_alerts] = GetParam();
  auto frames = nf::testing::read_capture(testdata(name + ".pcap"));
  ASSERT_TRUE(frames.ok()) << frames.status();
  const Hits expected = read_hits(testdata(name + ".alerts.tsv"));
  ASSERT_GE(expected.size(), frames_with_alerts);
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    const Hits hits = hits_of(run_at(device, "rules: " + name + ".rules", testdata(""), *frames));
    for (std::uint64_t frame = 1; frame <= frames->size(); ++frame) {
      const auto got = hits.find(frame);
      const auto want = expected.find(frame);
      EXPECT_EQ(got == hits.end() ? std::set<std::uint32_t>() : got->second,
                want == expected.end() ? std::set<std::uint32_t>() : want->second)
          << "frame " << frame;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SuricataCases,
                         ::testing::Values(Case{"contents", 101}, Case{"headers", 101}, Case{"keywords", 101},
                                           Case{"fields", 101}, Case{"tags", 16}),
                         [](auto const& test) { return test.param.name; });

}  // namespace
}  // namespace catena::nids
