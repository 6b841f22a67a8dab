// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/modes.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <utility>

namespace catena::bench {
namespace {

/// Figure 3: against F, for each of kConflictChains.
constexpr std::array<const char*, 3> kPaperConflicts{"", "+47.5 %", "+80.8 %"};
static_assert(kPaperConflicts.size() == std::size(kConflictChains));

class ConflictsSection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  Cell const* cell(const char* chain, double rate) const {
    return find(results(), Part::kConflicts, chain, kCopyStaged, kLatencyWireBytes, 0, rate);
  }
  void row(std::size_t chain, double rate);
};

/// Median of the moves to the device of a launch, in microseconds.
Spread to_device_us(Cell const& cell) {
  return over(cell, [](Repeat const& repeat) {
    LaunchTimes const* times = launches_of(repeat, kConflictNf);
    return times != nullptr ? times->median_us[kToDevice] : 0;
  });
}

void ConflictsSection::row(std::size_t chain, double rate) {
  Cell const* measured = cell(kConflictChains[chain], rate);
  Cell const* alone = cell(kConflictChains[0], rate);
  if (measured == nullptr) {
    return;
  }
  const Spread us = to_device_us(*measured);
  const double base = alone != nullptr ? to_device_us(*alone).median : 0;
  const Traced traced = traced_of(*measured, kConflictNf);
  add("| {} | {} Gbps | {} | {:.1f} ({:.1f} .. {:.1f}) | {} | {} | {} | {:.0f} |\n", kConflictChains[chain], rate,
      left_of(*measured), us.median, us.low, us.high,
      base > 0 && chain > 0 ? fmt::format("{:+.1f} %", kPercent * (us.median / base - 1)) : "", kPaperConflicts[chain],
      traced.launches, traced.packets_each);
}

PageText ConflictsSection::make() {
  if (!has(Part::kConflicts)) {
    return take();
  }
  add("## Conflicts of moves, figure 3\n\n"
      "What the firewall's moves to the device take, waiting for the bus included: the firewall alone (F), with IPsec\n"
      "behind it (F-I), and with IPsec and a NIDS (F-I-N), every one on the device, `{}`, frames of {} bytes, "
      "units\n"
      "and launches of {} packets. From traces; medians over the launches.\n\n"
      "| chain | offered | left, Gbps | to the device, us | against F | paper | launches | packets each |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kCopyStaged, kLatencyWireBytes, kBatchPackets);
  BarChart chart;
  chart.title = "The firewall's moves to the device";
  chart.x_title = "NFs on the device";
  chart.y_title = "microseconds";
  chart.labels.assign(std::begin(kConflictChains), std::end(kConflictChains));
  for (const double rate : kLatencyGbps) {
    BarSeries series{concat(rate, " Gbps offered"), {}};
    for (std::size_t chain = 0; chain < std::size(kConflictChains); ++chain) {
      row(chain, rate);
      Cell const* measured = cell(kConflictChains[chain], rate);
      series.bars.push_back(measured != nullptr ? bar_of(to_device_us(*measured)) : Bar{});
    }
    chart.series.push_back(std::move(series));
  }
  add("\n");
  figure("conflicts", chart);
  return take();
}

}  // namespace

PageText conflicts_section(Results const& results, Sizes const& sizes) {
  return ConflictsSection(results, sizes).make();
}

}  // namespace catena::bench
