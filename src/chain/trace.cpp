// SPDX-License-Identifier: Apache-2.0
#include "chain/trace.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace catena::chain {
namespace {

/// Trace viewers sort tracks by number: those of a stage are together.
constexpr std::uint32_t kTracksPerStage = 100;

class TraceWriter {
 public:
  explicit TraceWriter(std::int64_t start_ns) : start_ns_(start_ns) {}

  void track(std::uint32_t number, std::string const& name) {
    next(R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}}}})", number,
         nlohmann::json(name).dump());
    next(R"({{"ph":"M","name":"thread_sort_index","pid":1,"tid":{0},"args":{{"sort_index":{0}}}}})", number);
  }
  void event(std::uint32_t track, const char* name, std::int64_t begin_ns, std::int64_t end_ns, std::size_t launch,
             std::uint32_t packets) {
    constexpr double kNsPerUs = 1000;
    next(R"({{"ph":"X","name":"{}","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"launch":{},"packets":{}}}}})",
         name, track, static_cast<double>(begin_ns - start_ns_) / kNsPerUs,
         static_cast<double>(end_ns - begin_ns) / kNsPerUs, launch, packets);
  }
  std::string take() { return concat("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", text_, "\n]}\n"); }

 private:
  template <typename... Args>
  void next(fmt::format_string<Args...> format, Args&&... args) {
    text_ += text_.empty() ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  std::int64_t start_ns_;
  std::string text_;
};

void add_stage(StageTrace const& stage, std::uint32_t first_track, TraceWriter& writer) {
  std::uint32_t lanes = 0;
  for (dataplane::LaunchTrace const& launch : stage.launches) {
    lanes = std::max(lanes, launch.device ? launch.lane + 1 : 0);
  }
  writer.track(first_track, stage.stage);
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    writer.track(first_track + 1 + lane,
                 concat(stage.stage, " device", lane == 0 ? std::string() : concat(" ", lane + 1)));
  }
  for (std::size_t i = 0; i < stage.launches.size(); ++i) {
    dataplane::LaunchTrace const& launch = stage.launches[i];
    const auto add = [&](std::uint32_t track, const char* name, std::int64_t begin_ns, std::int64_t end_ns) {
      writer.event(track, name, begin_ns, end_ns, i, launch.packets);
    };
    add(first_track, "fill", launch.first_unit_ns, launch.submit_begin_ns);
    add(first_track, "submit", launch.submit_begin_ns, launch.submit_end_ns);
    add(first_track, "deliver", launch.ready_ns, launch.delivered_ns);
    if (launch.device) {
      const std::uint32_t track = first_track + 1 + launch.lane;
      add(track, "to device", launch.device->begin_ns, launch.device->moved_in_ns);
      add(track, "kernel", launch.device->moved_in_ns, launch.device->computed_ns);
      add(track, "to host", launch.device->computed_ns, launch.device->moved_back_ns);
    }
  }
}

}  // namespace

std::string to_chrome_trace(std::span<const StageTrace> stages) {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
  for (StageTrace const& stage : stages) {
    if (!stage.launches.empty()) {
      start_ns = std::min(start_ns, stage.launches.front().first_unit_ns);
    }
  }
  TraceWriter writer(start_ns);
  std::uint32_t first_track = 1;
  for (StageTrace const& stage : stages) {
    if (!stage.launches.empty()) {
      add_stage(stage, first_track, writer);
    }
    first_track += kTracksPerStage;
  }
  return writer.take();
}

}  // namespace catena::chain
