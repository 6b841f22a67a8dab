// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/page_sections.hpp"
#include "bench/chains/timeline.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <utility>

namespace catena::bench {
namespace {

struct PaperLatency {
  const char* chain;
  const char* p50;
  const char* p95;
};
/// Figure 16: baseline, then AdaptChain, in milliseconds at 10 Gbps.
constexpr std::array<PaperLatency, 2> kPaperLatency{{
    {"C1", "6.4 -> 4.5 ms (-30 %)", "9.2 -> 5.6 ms (-39 %)"},
    {"C4", "10.2 -> 5.2 ms (-49 %)", "13.2 -> 6.4 ms (-52 %)"},
}};

class LatencySection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  void latency();
  void timelines();
};

void LatencySection::latency() {
  if (!has(Part::kLatency)) {
    return;
  }
  add("## Latency, figure 16\n\nFrames of {} bytes (the paper names no size) at an offered rate. Where less left the\n"
      "chain than was offered, latency is that of a full pool, and marked.\n\n"
      "| chain | offered | mode | left, Gbps | p50 us | p95 us | p99 us |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n",
      kLatencyWireBytes);
  for (PaperLatency const& paper : kPaperLatency) {
    for (const double rate : kLatencyGbps) {
      for (const char* mode : {kCopyStaged, kAdaptive}) {
        Cell const* cell = find(results(), Part::kLatency, paper.chain, mode, kLatencyWireBytes, 0, rate);
        if (cell == nullptr) {
          continue;
        }
        const Spread p50 = over(*cell, &Repeat::p50_us);
        add("| {} | {} Gbps | {} | {} | {:.1f} ({:.1f} .. {:.1f}) | {:.1f} | {:.1f} |\n", paper.chain, rate, mode,
            left_of(*cell), p50.median, p50.low, p50.high, over(*cell, &Repeat::p95_us).median,
            over(*cell, &Repeat::p99_us).median);
      }
    }
    add("| {} | 10 Gbps, paper | baseline -> AdaptChain | | {} | {} | |\n", paper.chain, paper.p50, paper.p95);
  }
  add("\n");
  for (PaperLatency const& paper : kPaperLatency) {
    LineChart chart;
    chart.title = concat(paper.chain, ": latency at an offered rate");
    chart.x_title = "microseconds";
    chart.y_title = "percent of packets";
    for (const double rate : kLatencyGbps) {
      for (const char* mode : {kCopyStaged, kAdaptive}) {
        if (Cell const* cell = find(results(), Part::kLatency, paper.chain, mode, kLatencyWireBytes, 0, rate);
            cell != nullptr) {
          chart.series.push_back({concat(mode, ", ", rate, " Gbps"), cell->cdf_us});
        }
      }
    }
    if (!chart.series.empty()) {
      std::string file(paper.chain);
      file.front() = 'c';
      figure(file + "-latency", chart);
    }
  }
}

void LatencySection::timelines() {
  bool is_first = true;
  for (const double rate : kLatencyGbps) {
    Cell const* cell = find(results(), Part::kLatency, kTimelineChain, kTimelineMode, kLatencyWireBytes, 0, rate);
    if (cell == nullptr || cell->timeline.empty()) {
      continue;
    }
    if (std::exchange(is_first, false)) {
      add("## What a packet waits for\n\n"
          "One millisecond out of the middle of a short run beside those above, which are without traces. Of each NF\n"
          "on the device what the host does, then what the device does, a row for each launch in flight.\n"
          "`catena run --trace` writes the same of any chain.\n\n");
    }
    TimeChart chart;
    chart.title = concat(kTimelineChain, ", ", kTimelineMode, ", ", rate, " Gbps offered: launches");
    chart.x_title = "microseconds";
    chart.kinds = timeline_kinds();
    chart.length = kTimelineUs;
    chart.rows = cell->timeline;
    std::string file(kTimelineChain);
    file.front() = 'c';
    figure(concat(file, "-timeline-", rate, ""), chart);
  }
}

PageText LatencySection::make() {
  latency();
  timelines();
  return take();
}

}  // namespace

PageText latency_section(Results const& results, Sizes const& sizes) { return LatencySection(results, sizes).make(); }

}  // namespace catena::bench
