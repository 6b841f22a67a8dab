// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chrome_trace.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace catena::runtime {
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
  void event(std::uint32_t track, trace::Span const& span) {
    constexpr double kNsPerUs = 1000;
    next(R"({{"ph":"X","name":"{}","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"number":{},"packets":{}}}}})",
         span.what, track, static_cast<double>(span.begin_ns - start_ns_) / kNsPerUs,
         static_cast<double>(span.end_ns - span.begin_ns) / kNsPerUs, span.number, span.packets);
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

std::string track_name(StageTrace const& stage, std::uint32_t track) {
  const std::string number = track > 1 ? concat(" ", track) : std::string();
  return track == 0 ? stage.name : concat(stage.name, " device", number);
}

void add_stage(StageTrace const& stage, std::uint32_t first_track, TraceWriter& writer) {
  std::uint32_t tracks = 0;
  for (trace::Span const& span : stage.log->spans()) {
    tracks = std::max(tracks, span.track + 1);
  }
  for (std::uint32_t track = 0; track < tracks; ++track) {
    writer.track(first_track + track, track_name(stage, track));
  }
  for (trace::Span const& span : stage.log->spans()) {
    writer.event(first_track + span.track, span);
  }
}

}  // namespace

std::string to_chrome_trace(std::span<const StageTrace> stages) {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
  for (StageTrace const& stage : stages) {
    for (trace::Span const& span : stage.log->spans()) {
      start_ns = std::min(start_ns, span.begin_ns);
    }
  }
  TraceWriter writer(start_ns);
  std::uint32_t first_track = 1;
  for (StageTrace const& stage : stages) {
    add_stage(stage, first_track, writer);
    first_track += kTracksPerStage;
  }
  return writer.take();
}

}  // namespace catena::runtime
