// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

#include "bench/adaptchain/modes.hpp"

#include <catena/core/text.hpp>

namespace catena::bench {
namespace {

class BusySection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();
};

PageText BusySection::make() {
  PaperChain const& c3 = **find_chain("C3");
  if (!has(Part::kThroughput, c3.name)) {
    return take();
  }
  add("## Where C3's workers spend their time\n\n"
      "Share of each stage in the time that workers were busy, at full speed. What a device does meanwhile is not in "
      "it: a GPU stage is busy\n"
      "while it gathers, enqueues and completes. B: copy, A: adaptive.\n\n");
  BarChart chart;
  chart.title = "C3: busy time by stage";
  chart.x_title = "frame with FCS, bytes; B copy, A adaptive";
  chart.y_title = "nanoseconds a packet";
  chart.stacked = true;
  add("| frame | mode |");
  std::vector<std::string> names{"rx"};
  for (PaperNf const& nf : c3.nfs) {
    names.emplace_back(nf.name);
  }
  names.emplace_back("tx");
  for (std::string const& name : names) {
    chart.series.push_back({name, {}});
    add(" {} |", name);
  }
  add(" all, ns a packet |\n| --- | --- |");
  for (std::size_t i = 0; i <= names.size(); ++i) {
    add(" --- |");
  }
  add("\n");
  for (const std::uint32_t bytes : sizes()) {
    for (const char* mode : {kCopyStaged, kAdaptive}) {
      Cell const* cell = find(results(), Part::kThroughput, c3.name, mode, bytes);
      if (cell == nullptr || cell->repeats.back().received == 0) {
        continue;
      }
      Repeat const& repeat = cell->repeats.back();
      chart.labels.push_back(concat(bytes, std::string_view(mode) == kCopyStaged ? " B" : " A"));
      double all = 0;
      for (auto const& [name, seconds] : repeat.stage_seconds) {
        all += seconds;
      }
      add("| {} | {} |", bytes, mode);
      for (std::size_t i = 0; i < names.size() && i < repeat.stage_seconds.size(); ++i) {
        const double seconds = repeat.stage_seconds[i].second;
        chart.series[i].bars.push_back({seconds * kNsPerSecond / static_cast<double>(repeat.received), 0, 0});
        add(" {:.1f} % |", all > 0 ? kPercent * seconds / all : 0);
      }
      add(" {:.1f} |\n", all * kNsPerSecond / static_cast<double>(repeat.received));
    }
  }
  add("\n");
  figure("c3-stages", chart);
  return take();
}

}  // namespace

PageText busy_section(Results const& results, Sizes const& sizes) { return BusySection(results, sizes).make(); }

}  // namespace catena::bench
