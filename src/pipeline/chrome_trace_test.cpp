// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chrome_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;

TEST(ChromeTrace, has_a_track_for_the_host_and_one_for_each_launch_in_flight) {
  constexpr std::int64_t kStart = 5'000'000'000;
  trace::SpanLog none;
  trace::SpanLog log;
  const auto add = [&](const char* what, std::uint32_t track, std::uint32_t packets, std::int64_t begin_ns,
                       std::int64_t end_ns) {
    log.add({what, track, 3, packets, kStart + begin_ns, kStart + end_ns});
  };
  add("fill", 0, 256, 0, 1'000);
  add("submit", 0, 256, 1'000, 3'000);
  add("deliver", 0, 256, 20'500, 21'000);
  add("kernel", 1, 256, 4'000, 9'000);
  add("to host", 2, 7, 9'000, 12'250);
  const std::vector<StageTrace> stages{{"none", &none}, {"a \"b\"", &log}};
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
  EXPECT_THAT(events,
              ElementsAre(std::tuple("a \"b\"", "fill", 0.0, 1.0, 256), std::tuple("a \"b\"", "submit", 1.0, 2.0, 256),
                          std::tuple("a \"b\"", "deliver", 20.5, 0.5, 256),
                          std::tuple("a \"b\" device", "kernel", 4.0, 5.0, 256),
                          std::tuple("a \"b\" device 2", "to host", 9.0, 3.25, 7)));
}

TEST(ChromeTrace, of_nothing_has_no_events) {
  EXPECT_TRUE(nlohmann::json::parse(to_chrome_trace({})).at("traceEvents").empty());
}

}  // namespace
}  // namespace catena::runtime
