// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/page_sections.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace catena::bench {
namespace {

/// Figure 15(b), milliseconds at 10 Gbps, for each of kUnitSizes; the text has the ends of a range.
struct PaperUnit {
  const char* p50;
  const char* p95;
};
constexpr std::array<PaperUnit, 5> kPaperUnits{{{"9.9 ms", "11.1 ms"},
                                                {"3.8 ms", "5.5 ms"},
                                                {"3.8 .. 4.6 ms", "5.5 .. 8.0 ms"},
                                                {"3.8 .. 4.6 ms", "5.5 .. 8.0 ms"},
                                                {"4.6 ms", "8.0 ms"}}};
static_assert(kPaperUnits.size() == std::size(kUnitSizes));

class UnitsSection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  Cell const* latency(std::uint32_t units) const {
    return find(results(), Part::kLatency, "C4", kAdaptive, kLatencyWireBytes, units, kLatencyGbps[0]);
  }
  void throughput();
  void latencies();
};

void UnitsSection::throughput() {
  add("## Unit sizes with C4, figure 15\n\nPaper: stable from 16 to 1024 packets a unit, up to 40 % lower with 4.\n\n");
  BarChart chart;
  chart.title = "C4, adaptive: throughput by unit size";
  chart.x_title = "frame with FCS, bytes";
  chart.y_title = "Gbps";
  chart.labels = labels_of(sizes());
  add("| packets a unit | frame | Gbps |\n| --- | --- | --- |\n");
  for (const std::uint32_t units : kUnitSizes) {
    BarSeries series{concat(units, " packets"), {}};
    for (const std::uint32_t bytes : sizes()) {
      Cell const* cell = find(results(), Part::kUnits, "C4", kAdaptive, bytes, units);
      series.bars.push_back(cell != nullptr ? bar_of(gbps(*cell)) : Bar{});
      if (cell != nullptr) {
        const Spread speed = gbps(*cell);
        add("| {} | {} | {:.2f} ({:.2f} .. {:.2f}) |\n", units, bytes, speed.median, speed.low, speed.high);
      }
    }
    chart.series.push_back(std::move(series));
  }
  add("\n");
  figure("c4-unit-throughput", chart);
}

void UnitsSection::latencies() {
  if (std::none_of(std::begin(kUnitSizes), std::end(kUnitSizes),
                   [this](std::uint32_t units) { return latency(units) != nullptr; })) {
    return;
  }
  LineChart lines;
  lines.title = concat("C4, adaptive, ", kLatencyGbps[0], " Gbps offered: latency by unit size");
  lines.x_title = "microseconds";
  lines.y_title = "percent of packets";
  add("Latency of C4, `{}`, frames of {} bytes, {} Gbps offered:\n\n"
      "| packets a unit | left, Gbps | p50 us | p50, paper | p95 us | p95, paper |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      kAdaptive, kLatencyWireBytes, kLatencyGbps[0]);
  for (std::size_t i = 0; i < kPaperUnits.size(); ++i) {
    if (Cell const* cell = latency(kUnitSizes[i]); cell != nullptr) {
      const Spread p50 = over(*cell, &Repeat::p50_us);
      const Spread p95 = over(*cell, &Repeat::p95_us);
      add("| {} | {} | {:.1f} ({:.1f} .. {:.1f}) | {} | {:.1f} ({:.1f} .. {:.1f}) | {} |\n", kUnitSizes[i],
          left_of(*cell), p50.median, p50.low, p50.high, kPaperUnits[i].p50, p95.median, p95.low, p95.high,
          kPaperUnits[i].p95);
      lines.series.push_back({concat(kUnitSizes[i], " packets"), cell->cdf_us});
    }
  }
  add("\n");
  figure("c4-unit-latency", lines);
}

PageText UnitsSection::make() {
  if (has(Part::kUnits)) {
    throughput();
    latencies();
  }
  return take();
}

}  // namespace

PageText units_section(Results const& results, Sizes const& sizes) { return UnitsSection(results, sizes).make(); }

}  // namespace catena::bench
