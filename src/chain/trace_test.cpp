// SPDX-License-Identifier: Apache-2.0
#include "chain/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace catena::chain {
namespace {

using dataplane::LaunchTrace;
using ::testing::ElementsAre;

TEST(ChromeTrace, has_a_track_for_the_host_and_one_for_each_launch_in_flight) {
  constexpr std::int64_t kStart = 5'000'000'000;
  const std::vector<LaunchTrace> launches{
      {0, 256, kStart, kStart + 1'000, kStart + 3'000, kStart + 20'500, kStart + 21'000,
       kernel::LaunchTimes{kStart + 2'000, kStart + 4'000, kStart + 9'000, kStart + 12'250}},
      {1, 7, kStart + 4'000, kStart + 5'000, kStart + 6'000, kStart + 30'000, kStart + 31'000, {}}};
  const std::vector<StageTrace> stages{{"none", {}}, {"a \"b\"", launches}};
  const nlohmann::json json = nlohmann::json::parse(to_chrome_trace(stages));
  std::map<std::uint32_t, std::string> tracks;
  std::vector<std::tuple<std::string, std::string, double, double, int>> events;
  for (auto const& event : json.at("traceEvents")) {
    if (event.at("name") == "thread_name") {
      tracks[event.at("tid")] = event.at("args").at("name");
    } else if (event.at("ph") == "X") {
      events.emplace_back(tracks.at(event.at("tid")), event.at("name"), event.at("ts"), event.at("dur"),
                          event.at("args").at("packets"));
    }
  }
  EXPECT_THAT(
      events,
      ElementsAre(std::tuple("a \"b\"", "fill", 0.0, 1.0, 256), std::tuple("a \"b\"", "submit", 1.0, 2.0, 256),
                  std::tuple("a \"b\"", "deliver", 20.5, 0.5, 256),
                  std::tuple("a \"b\" device", "to device", 2.0, 2.0, 256),
                  std::tuple("a \"b\" device", "kernel", 4.0, 5.0, 256),
                  std::tuple("a \"b\" device", "to host", 9.0, 3.25, 256), std::tuple("a \"b\"", "fill", 4.0, 1.0, 7),
                  std::tuple("a \"b\"", "submit", 5.0, 1.0, 7), std::tuple("a \"b\"", "deliver", 30.0, 1.0, 7)));
}

TEST(ChromeTrace, of_nothing_has_no_events) {
  EXPECT_TRUE(nlohmann::json::parse(to_chrome_trace({})).at("traceEvents").empty());
}

}  // namespace
}  // namespace catena::chain
