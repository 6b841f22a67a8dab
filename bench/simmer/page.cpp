// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/page.hpp"

#include "bench/common/chart.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::bench {
namespace {

using chain::FlowMode;

constexpr double kMega = 1e6;
constexpr double kKilo = 1e3;
constexpr double kPercent = 100;
constexpr double kUsPerSecond = 1e6;
constexpr std::size_t kBusiest = 3;
constexpr const char* kHeterogeneous = "heterogeneous";
constexpr const char* kBottleneck = "vpn";

/// Microseconds that the paper's NFs take for a packet of 1472 B (table 1).
struct PaperNfTime {
  std::string_view nf;
  double us;
};
constexpr std::array<PaperNfTime, 3> kPaperTimes{{{"router", 0.04}, {"ipsec", 1.63}, {"nids", 0.52}}};

/// Thousands of packets a second that the paper's second NF drops, and its share of what came to it (table 2).
struct PaperDrops {
  std::uint32_t bytes;
  double kpps;
  double percent;
};
constexpr std::array<PaperDrops, 5> kPaperDrops{
    {{128, 48.82, 4}, {256, 97.65, 6}, {512, 289.14, 16}, {1024, 510.52, 36}, {1472, 722.33, 48}}};

/// By how many percent back-pressure is above vanilla in the paper, at best.
struct PaperGain {
  std::string_view part;
  std::string_view chain;
  double percent;
};
constexpr std::array<PaperGain, 6> kPaperGains{{{"sizes", "heterogeneous", 29},
                                                {"qt", "heterogeneous", 29},
                                                {"qt", "3 ipsec", 13},
                                                {"dynamic", "dynamic heterogeneous", 23},
                                                {"dynamic", "dynamic 3 ipsec", 13},
                                                {"sharing", "heterogeneous", 29}}};

std::string text_of(Spread const& spread, double unit, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", spread.median / unit, digits, spread.low / unit, digits,
                     spread.high / unit, digits);
}

std::string gain_text(SimmerCell const& cell) {
  const Spread above = above_vanilla(cell);
  return fmt::format("{:+.1f} % ({:+.1f} .. {:+.1f})", above.median, above.low, above.high);
}

std::string busy_text(std::vector<BusyShare> const& busy) {
  std::string text;
  for (std::size_t i = 0; i < std::min(busy.size(), kBusiest); ++i) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", busy[i].what, kPercent * busy[i].share);
  }
  return text.empty() ? "-" : text;
}

/// "rt 1.2 (4.0 %), vpn 0": thousands a second that did not fit into each NF's ring.
std::string drops_text(FlowRuns const& runs) {
  std::string text;
  for (NfRuns const& nf : runs.nfs) {
    const double dropped = spread_of(nf.drops_per_s).median;
    text += fmt::format("{}{} {:.{}f}", text.empty() ? "" : ", ", nf.name, dropped / kKilo, dropped > 0 ? 1 : 0);
    text += dropped > 0 ? fmt::format(" ({:.1f} %)", drop_percent(nf).median) : "";
  }
  return text;
}

/// "rt 220 x 2048": launches a second and packets of one.
std::string launches_text(FlowRuns const& runs) {
  std::string text;
  for (NfRuns const& nf : runs.nfs) {
    text += fmt::format("{}{} {:.0f} x {:.0f}", text.empty() ? "" : ", ", nf.name, spread_of(nf.launches_per_s).median,
                        launch_packets(nf).median);
  }
  return text;
}

class Page final : private MarkdownPage {
 public:
  explicit Page(SimmerResults const& results) : results_(results) {}
  PageText make();

 private:
  std::vector<SimmerCell const*> measured(std::string_view part) const;
  void head();
  void failures();
  void bars();
  void alone();
  void rows(std::string_view part);
  void table_2();
  void nf_throughput();
  void launches();
  void sweep(std::string_view chain);
  void sweep_chart(std::string_view chain);
  void long_runs();

  SimmerResults const& results_;
};

std::vector<SimmerCell const*> Page::measured(std::string_view part) const {
  std::vector<SimmerCell const*> cells;
  for (SimmerCell const& cell : results_.cells) {
    if (cell.part == part && is_measured(cell)) {
      cells.push_back(&cell);
    }
  }
  return cells;
}

void Page::head() {
  add("# Back-pressure beside rings that drop, in chains that share a GPU\n\n"
      "Written by `catena-bench simmer`; `docs/performance.md` says how it measures. Beside ours are the figures of\n"
      "\"Simmer: Rate Proportional Scheduling to Reduce Packet Drops in vGPU Based NF Chains\" (ICPP 2022), on its "
      "own\n"
      "machine: NFs in virtual machines that share an A100 by vGPU.\n\n"
      "| way | packets for which a ring has no room |\n| --- | --- |\n"
      "| vanilla | are dropped there, whatever was done to them before |\n"
      "| back-pressure | wait: NFs in front of it pause, and rx at last |\n\n"
      "| NFs share the GPU as | |\n| --- | --- |\n"
      "| process | each has a process and a device server, so that the GPU gives turns to their contexts: in place of "
      "vGPU |\n"
      "| partitioned | one process, green contexts of 16 : 48 : 32 compute units: in place of MIG 1 : 3 : 2 |\n"
      "| one context | one process, nothing is divided |\n\n"
      "Loads are above what chains can do. \"First NF\": packets are offered at the rate that the first NF takes "
      "alone; "
      "\"twice\": at\ntwice what the chain does with back-pressure at the first load. The ring in front of an NF holds "
      "qt launches. Sizes are\nthose of frames with FCS; three ESP tunnels make of the largest one a frame that slots "
      "still hold.\n\n"
      "| | |\n| --- | --- |\n| device | {}, of which NFs without parts share {} compute units |\n| machine | {} |\n| "
      "commit | {} |\n| command | `{}` |\n"
      "| runs | {} of {} s each, the ways in turn within each repeat |\n\n"
      "Values are medians; in parentheses the smallest and the largest of the repeats. Each run's account balances: "
      "packets in\nare packets out and packets dropped. \"Busy\" are the host's busiest stages in the last run, as "
      "shares of its time; what an\nNF does in its process is not in them.\n\n",
      results_.device, results_.compute_units, results_.machine, results_.commit, results_.command, results_.repeats,
      results_.seconds);
}

void Page::failures() {
  for (AloneCell const& cell : results_.alone) {
    if (!cell.error.empty()) {
      add("**{} alone, {}, {} B could not be measured: {}**\n\n", cell.nf, to_string(cell.shared_as), cell.wire_bytes,
          cell.error);
    }
  }
  for (SimmerCell const& cell : results_.cells) {
    if (!cell.error.empty()) {
      add("**{}: {}, {}, {} B, qt {}, load {} could not be measured: {}**\n\n", cell.part, cell.chain,
          to_string(cell.shared_as), cell.wire_bytes, cell.qt, to_string(cell.load), cell.error);
    }
  }
  for (LongRun const& run : results_.long_runs) {
    if (!run.error.empty()) {
      add("**The long run could not be measured: {}**\n\n", run.error);
    }
  }
}

/// The best cell of each kind, and drops over the thresholds that the paper found good.
void Page::bars() {
  add("## Against the paper's figures\n\n| what | paper | here, at best | where | met |\n| --- | ---: | ---: | --- | "
      "--- "
      "|\n");
  for (PaperGain const& paper : kPaperGains) {
    SimmerCell const* best = nullptr;
    for (SimmerCell const* cell : measured(paper.part)) {
      if (cell->chain == paper.chain && cell->shared_as == GpuSharedAs::kProcess &&
          (best == nullptr || above_vanilla(*cell).median > above_vanilla(*best).median)) {
        best = cell;
      }
    }
    if (best != nullptr) {
      add("| {}: {}, back-pressure above vanilla | {:+.0f} % | {} | {} B, qt {}, load {} | {} |\n", paper.part,
          paper.chain, paper.percent, gain_text(*best), best->wire_bytes, best->qt, to_string(best->load),
          above_vanilla(*best).median >= paper.percent ? "yes" : "no");
    }
  }
  double worst = 0;
  bool is_any = false;
  for (SimmerCell const& cell : results_.cells) {
    if (is_measured(cell)) {
      worst = std::max(worst, dropped_inside(find(cell, FlowMode::kBackpressure)).high);
      is_any = true;
    }
  }
  if (is_any) {
    add("| packets dropped inside with back-pressure, any cell and qt | 0 for qt 2 to 2.8 | {:.0f} | | {} |\n", worst,
        worst == 0 ? "yes" : "no");
  }
  add("\n");
}

void Page::alone() {
  add("## NFs alone\n\nMicroseconds a packet on the whole device (table 1): end to end, and of the kernel.\n\n"
      "| NF | B | shared as | tuning | us, end to end | kernel us | Mpps | paper, 1472 B | busy |\n"
      "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | --- |\n");
  for (AloneCell const& cell : results_.alone) {
    if (!is_measured(cell)) {
      continue;
    }
    const Spread speed = spread_of(cell.packets_per_s);
    const auto paper = std::ranges::find(kPaperTimes, std::string_view(cell.nf), &PaperNfTime::nf);
    add("| {} | {} | {} | `{}` | {:.3f} ({:.3f} .. {:.3f}) | {} | {:.2f} | {} | {} |\n", cell.nf, cell.wire_bytes,
        to_string(cell.shared_as), cell.tuning, kUsPerSecond / speed.median, kUsPerSecond / speed.high,
        kUsPerSecond / speed.low,
        cell.kernel_us.empty() ? "-" : fmt::format("{:.4f}", spread_of(cell.kernel_us).median), speed.median / kMega,
        paper == kPaperTimes.end() ? "-" : fmt::format("{}", paper->us), busy_text(cell.busy));
  }
  add("\n");
}

/// What left, beside each other.
void Page::rows(std::string_view part) {
  add("| chain | shared as | B | qt | load | offered Mpps | vanilla Mpps | back-pressure Mpps | above vanilla | "
      "vanilla "
      "drops inside, kpps | launches a second x packets: vanilla | back-pressure | busy: vanilla | back-pressure |\n| "
      "--- | --- | "
      "---: | ---: | --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- |\n");
  for (SimmerCell const* cell : measured(part)) {
    FlowRuns const& vanilla = find(*cell, FlowMode::kVanilla);
    FlowRuns const& ours = find(*cell, FlowMode::kBackpressure);
    add("| {} | {} | {} | {} | {} | {:.2f} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell->chain,
        to_string(cell->shared_as), cell->wire_bytes, cell->qt, to_string(cell->load), cell->offered_per_s / kMega,
        text_of(spread_of(vanilla.packets_per_s), kMega, 2), text_of(spread_of(ours.packets_per_s), kMega, 2),
        gain_text(*cell), drops_text(vanilla), launches_text(vanilla), launches_text(ours), busy_text(vanilla.busy),
        busy_text(ours.busy));
  }
  add("\n");
}

void Page::table_2() {
  add("### Packets dropped inside\n\nThousands a second, and the share of what came to the ring (table 2). With "
      "back-pressure there are none.\n\n| B | load | rt | vpn | ids | paper, second NF |\n"
      "| ---: | --- | ---: | ---: | ---: | ---: |\n");
  for (SimmerCell const* cell : measured("sizes")) {
    FlowRuns const& vanilla = find(*cell, FlowMode::kVanilla);
    add("| {} | {} |", cell->wire_bytes, to_string(cell->load));
    for (NfRuns const& nf : vanilla.nfs) {
      add(" {} ({:.1f} %) |", text_of(spread_of(nf.drops_per_s), kKilo, 1), drop_percent(nf).median);
    }
    const auto paper = std::ranges::find(kPaperDrops, cell->wire_bytes, &PaperDrops::bytes);
    add(" {} |\n", paper == kPaperDrops.end() ? "-" : fmt::format("{} ({} %)", paper->kpps, paper->percent));
  }
  add("\n");
}

void Page::nf_throughput() {
  add("### What each NF does\n\nMillions of packets a second (figure 2).\n\n| B | load | way | rt | vpn | ids |\n"
      "| ---: | --- | --- | ---: | ---: | ---: |\n");
  BarChart chart;
  chart.title = "Throughput of each NF, load first NF";
  chart.x_title = "way and size of frames";
  chart.y_title = "Mpps";
  for (SimmerCell const* cell : measured("sizes")) {
    for (const FlowMode mode : kFlowModes) {
      FlowRuns const& runs = find(*cell, mode);
      add("| {} | {} | {} |", cell->wire_bytes, to_string(cell->load), to_string(mode));
      for (NfRuns const& nf : runs.nfs) {
        add(" {} |", text_of(spread_of(nf.packets_per_s), kMega, 2));
      }
      add("\n");
      if (cell->load != Load::kFirstNf) {
        continue;
      }
      chart.labels.push_back(concat(to_string(mode), " ", cell->wire_bytes));
      chart.series.resize(runs.nfs.size());
      for (std::size_t i = 0; i < runs.nfs.size(); ++i) {
        const Spread speed = spread_of(runs.nfs[i].packets_per_s);
        chart.series[i].name = runs.nfs[i].name;
        chart.series[i].bars.push_back({speed.median / kMega, speed.low / kMega, speed.high / kMega});
      }
    }
  }
  add("\n");
  figure("nf-throughput", chart);
}

void Page::launches() {
  add("### Launches of the slowest NF\n\nPercent of all launches that are those of `{}` (figure 8: more with "
      "back-pressure at every size).\n\n| B | load | vanilla | back-pressure | more |\n| ---: | --- | ---: | ---: | "
      "--- "
      "|\n",
      kBottleneck);
  for (SimmerCell const* cell : measured("sizes")) {
    const Spread vanilla = launch_percent(find(*cell, FlowMode::kVanilla), kBottleneck);
    const Spread ours = launch_percent(find(*cell, FlowMode::kBackpressure), kBottleneck);
    add("| {} | {} | {} | {} | {} |\n", cell->wire_bytes, to_string(cell->load), text_of(vanilla, 1, 1),
        text_of(ours, 1, 1), ours.median > vanilla.median ? "yes" : "no");
  }
  add("\n");
}

/// Figures 6 and 7.
void Page::sweep(std::string_view chain) {
  std::vector<SimmerCell const*> cells = measured("qt");
  std::erase_if(cells, [chain](SimmerCell const* cell) { return cell->chain != chain; });
  if (cells.empty()) {
    return;
  }
  double best = 0;
  for (SimmerCell const* cell : cells) {
    best = std::max(best, spread_of(find(*cell, FlowMode::kVanilla).packets_per_s).median);
  }
  add("### {}, {} B\n\n| qt | vanilla Mpps | drops inside, kpps | back-pressure Mpps | drops inside | above vanilla of "
      "this qt | above vanilla at its best qt | busy |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |\n",
      chain, cells.front()->wire_bytes);
  for (SimmerCell const* cell : cells) {
    FlowRuns const& vanilla = find(*cell, FlowMode::kVanilla);
    FlowRuns const& ours = find(*cell, FlowMode::kBackpressure);
    const Spread speed = spread_of(ours.packets_per_s);
    add("| {} | {} | {} | {} | {:.0f} | {} | {:+.1f} % | {} |\n", cell->qt,
        text_of(spread_of(vanilla.packets_per_s), kMega, 2), drops_text(vanilla), text_of(speed, kMega, 2),
        dropped_inside(ours).high, gain_text(*cell), kPercent * (speed.median / best - 1), busy_text(ours.busy));
  }
  add("\n");
  sweep_chart(chain);
}

void Page::sweep_chart(std::string_view chain) {
  BarChart chart;
  chart.title = concat("Throughput over qt, ", chain);
  chart.x_title = "qt";
  chart.y_title = "Mpps";
  for (const FlowMode mode : kFlowModes) {
    chart.series.push_back({std::string(to_string(mode)), {}});
  }
  for (SimmerCell const* cell : measured("qt")) {
    if (cell->chain != chain) {
      continue;
    }
    chart.labels.push_back(fmt::format("{}", cell->qt));
    for (std::size_t i = 0; i < kFlowModes.size(); ++i) {
      const Spread speed = spread_of(find(*cell, kFlowModes[i]).packets_per_s);
      chart.series[i].bars.push_back({speed.median / kMega, speed.low / kMega, speed.high / kMega});
    }
  }
  std::string stem = concat("qt-", chain);
  std::ranges::replace(stem, ' ', '-');
  figure(stem, chart);
}

void Page::long_runs() {
  for (LongRun const& run : results_.long_runs) {
    if (!run.error.empty()) {
      continue;
    }
    add("## Overload for long\n\n{}, {} B, {:.2f} Mpps offered for {:.0f} s, back-pressure: {:.2f} Mpps left, {} "
        "packets were dropped inside.\n\n| look |",
        run.chain, run.wire_bytes, run.offered_per_s / kMega, run.seconds, run.packets_per_s / kMega,
        run.dropped_inside);
    for (std::size_t i = 0; i < run.memory_mb.size(); ++i) {
      add(" {} |", i + 1);
    }
    add("\n| --- |");
    for (std::size_t i = 0; i < run.memory_mb.size(); ++i) {
      add(" ---: |");
    }
    for (auto const& [what, values] :
         {std::pair{"resident MB", &run.memory_mb}, std::pair{"slots in use", &run.slots_in_use}}) {
      add("\n| {} |", what);
      for (const double value : *values) {
        add(" {:.0f} |", value);
      }
    }
    add("\n\n");
  }
}

PageText Page::make() {
  head();
  failures();
  bars();
  alone();
  if (!measured("sizes").empty()) {
    add("## One after another\n\nRouter, IPsec, NIDS over sizes (figures 2, 8 and 9, table 2).\n\n");
    rows("sizes");
    table_2();
    nf_throughput();
    launches();
  }
  if (!measured("qt").empty()) {
    add("## The threshold\n\nBatches that may wait in front of an NF, with vanilla the room of its ring (figures 6 and "
        "7); load first NF.\n\n");
    for (SimmerChain const& chain : simmer_chains()) {
      sweep(chain.name);
    }
  }
  if (!measured("dynamic").empty()) {
    add("## Two flows\n\nHalf of the packets skip the first NF (figure 10).\n\n");
    rows("dynamic");
  }
  if (!measured("sharing").empty()) {
    add("## Ways to share the GPU\n\nFigure 11.\n\n");
    rows("sharing");
  }
  if (!measured("own").empty()) {
    add("## With Catena's own tuning\n\nThree launches of an NF at once, as a chain file without `tuning` has "
        "them.\n\n");
    rows("own");
  }
  long_runs();
  return take();
}

}  // namespace

PageText simmer_page(SimmerResults const& results) { return Page(results).make(); }

}  // namespace catena::bench
