// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/page_sections.hpp"

#include <catena/core/text.hpp>

#include <utility>

namespace catena::bench {
namespace {

class UnitsSection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();
};

PageText UnitsSection::make() {
  if (!has(Part::kUnits)) {
    return take();
  }
  add("## Unit sizes with C4, figure 15\n\nPaper: stable from 16 to 1024 packets a unit, up to 40 % lower with 4; p50\n"
      "at 10 Gbps 3.8 ms at 16, 4.6 ms at 1024, 9.9 ms at 4.\n\n");
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
  LineChart lines;
  lines.title = concat("C4, adaptive, ", kLatencyGbps[0], " Gbps offered: latency by unit size");
  lines.x_title = "microseconds";
  lines.y_title = "percent of packets";
  for (const std::uint32_t units : kUnitSizes) {
    if (Cell const* cell = find(results(), Part::kLatency, "C4", kAdaptive, kLatencyWireBytes, units, kLatencyGbps[0]);
        cell != nullptr) {
      lines.series.push_back({concat(units, " packets"), cell->cdf_us});
    }
  }
  if (!lines.series.empty()) {
    figure("c4-unit-latency", lines);
  }
  return take();
}

}  // namespace

PageText units_section(Results const& results, Sizes const& sizes) { return UnitsSection(results, sizes).make(); }

}  // namespace catena::bench
