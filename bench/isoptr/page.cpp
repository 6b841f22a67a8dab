// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/page.hpp"

#include "bench/chains/chains.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace catena::bench {
namespace {

constexpr double kPercent = 100;
/// In percent, for an H200: G-NET's lowest, and what Catena aims at.
constexpr double kBar = 2.8;
constexpr double kGoal = 1;
/// G-NET, figure 15. Its text gives the range over everything that it measured, and no single figure.
constexpr const char* kGnet = "2.8 .. 4.5 %";

bool is_measured(IsoPtrCell const& cell) { return cell.error.empty() && !cell.repeats.empty(); }

std::string percent_text(Spread const& spread) {
  return fmt::format("{:+.2f} % ({:+.2f} .. {:+.2f})", spread.median, spread.low, spread.high);
}

/// "yes" where what is asked for is met, as far as repeats agree on it.
const char* is_met(Spread const& overhead, double limit) {
  return overhead.high <= limit ? "yes" : overhead.median <= limit ? "in the median" : "no";
}

class Page final : private MarkdownPage {
 public:
  explicit Page(IsoPtrResults const& results) : results_(results) {}
  PageText make();

 private:
  std::vector<IsoPtrCell const*> cells(IsoPtrPart part) const {
    std::vector<IsoPtrCell const*> found;
    for (IsoPtrCell const& cell : results_.cells) {
      if (cell.part == part && is_measured(cell)) {
        found.push_back(&cell);
      }
    }
    return found;
  }
  void head();
  void failures();
  void bars();
  void kernels();
  void chains();
  void chart(IsoPtrPart part, std::uint32_t packets, std::string const& stem, std::string const& title);

  IsoPtrResults const& results_;
};

void Page::head() {
  add("# What the checks of pointers in kernels cost\n\n"
      "Written by `catena-bench isoptr`; `docs/performance.md` says how it measures. Every kernel is compiled twice, "
      "as\n"
      "chains have it and with the checks of `IsoPtr` left out, which only this benchmark can do. Beside ours is "
      "figure "
      "15\n"
      "of \"G-NET: Effective GPU Sharing in NFV Systems\" (NSDI 2018): {} over NFs by themselves and chains, on its "
      "own\n"
      "machine; its text gives no single figure.\n\n"
      "| | |\n| --- | --- |\n| device | {} |\n| plans by | {} |\n| machine | {} |\n| commit | {} |\n| command | `{}` "
      "|\n"
      "| runs | {:.6g} s of a chain, of which a quarter is warm-up, and {:.6g} s of a kernel; with checks and without, "
      "in turn |\n"
      "| tuning of chains | `{}` |\n| a launch of one packet | {:.1f} us |\n"
      "| output compared | {} packets with the CPU's, with checks and without, {} different |\n\n",
      kGnet, results_.device, results_.costs_from, results_.machine, results_.commit, results_.command,
      results_.seconds, results_.kernel_seconds, results_.tuning, results_.us_per_empty_launch,
      results_.samples_compared(), results_.samples_different());
  add("*Overhead*: time with checks divided by the time of the run without them right after it, less 1; median "
      "(smallest ..\nlargest) of the repeats. A spread on both sides of 0 is no difference. Frames are counted with "
      "FCS; where ESP is\ndecrypted, those inside.\n\n");
}

void Page::failures() {
  if (results_.failed_cells() == 0) {
    return;
  }
  add("**{} measurements failed:**\n\n", results_.failed_cells());
  for (IsoPtrCell const& cell : results_.cells) {
    if (!cell.error.empty()) {
      add("- {} {} {} B: {}\n", to_string(cell.part), cell.name, cell.wire_bytes, cell.error);
    }
  }
  add("\n");
}

/// The largest overhead of each part, beside what is asked for.
void Page::bars() {
  add("| largest overhead of | G-NET | here | where | bar {} % | goal {} % |\n| --- | --- | --- | --- | --- | --- |\n",
      kBar, kGoal);
  for (const IsoPtrPart part : {IsoPtrPart::kKernels, IsoPtrPart::kChains}) {
    const std::vector<IsoPtrCell const*> all = cells(part);
    const auto largest = std::max_element(all.begin(), all.end(), [](IsoPtrCell const* a, IsoPtrCell const* b) {
      return overhead_percent(*a).median < overhead_percent(*b).median;
    });
    if (largest != all.end()) {
      const Spread overhead = overhead_percent(**largest);
      add("| {} | {} | {} | {}, {} B{} | {} | {} |\n", to_string(part), kGnet, percent_text(overhead), (*largest)->name,
          (*largest)->wire_bytes, (*largest)->packets != 0 ? concat(", ", (*largest)->packets, " packets") : "",
          is_met(overhead, kBar), is_met(overhead, kGoal));
    }
  }
  add("\n");
}

void Page::chart(IsoPtrPart part, std::uint32_t packets, std::string const& stem, std::string const& title) {
  BarChart chart;
  chart.title = title;
  chart.x_title = part == IsoPtrPart::kKernels ? "kernel" : "chain";
  chart.y_title = "percent more time with checks";
  std::set<std::uint32_t> sizes;
  for (IsoPtrCell const* cell : cells(part)) {
    sizes.insert(cell->wire_bytes);
    if (std::find(chart.labels.begin(), chart.labels.end(), cell->name) == chart.labels.end()) {
      chart.labels.push_back(cell->name);
    }
  }
  for (const std::uint32_t bytes : sizes) {
    BarSeries series{concat(bytes, " B"), std::vector<Bar>(chart.labels.size())};
    for (IsoPtrCell const* cell : cells(part)) {
      const auto label = std::find(chart.labels.begin(), chart.labels.end(), cell->name) - chart.labels.begin();
      if (cell->wire_bytes == bytes && cell->packets == packets) {
        const Spread overhead = overhead_percent(*cell);
        series.bars[static_cast<std::size_t>(label)] = {overhead.median, overhead.low, overhead.high};
      }
    }
    chart.series.push_back(std::move(series));
  }
  figure(stem, chart);
}

void Page::kernels() {
  const std::vector<IsoPtrCell const*> all = cells(IsoPtrPart::kKernels);
  if (all.empty()) {
    return;
  }
  add("## Kernels by themselves\n\nPackets are on the device, and nothing is copied: the kernel is all there is, so "
      "this is the most that checks can\ncost. *Limit*: the kernel, or launches where one takes little longer than "
      "that of one packet.\n\n"
      "| kernel | frame | packets a launch | ns a packet with checks | without | overhead | limit |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  std::set<std::uint32_t> launches;
  for (IsoPtrCell const* cell : all) {
    launches.insert(cell->packets);
    add("| {} | {} | {} | {:.3f} | {:.3f} | {} | {} |\n", cell->name, cell->wire_bytes, cell->packets,
        over(*cell, &IsoPtrRepeat::checked_ns).median, over(*cell, &IsoPtrRepeat::unchecked_ns).median,
        percent_text(overhead_percent(*cell)), limit_of(results_, *cell));
  }
  add("\n");
  for (const std::uint32_t packets : launches) {
    chart(IsoPtrPart::kKernels, packets, concat("kernels-", packets),
          concat("Kernels by themselves, ", packets, " packets a launch"));
  }
}

void Page::chains() {
  const std::vector<IsoPtrCell const*> all = cells(IsoPtrPart::kChains);
  if (all.empty()) {
    return;
  }
  add("## Chains of G-NET\n\nFrom ESP in packet memory to a null sink, every NF on the device; plans are those of "
      "`--sync adaptive`. *Limit*: what\nwas busy for the largest part of a traced run beside those that count: moves "
      "over the bus, kernels, or a stage of the\nhost.\n\n");
  for (PaperChain const& chain : gnet_chains()) {
    add("- {}: {}\n", chain.name, chain.title());
  }
  add("\n| chain | frame | Mpps with checks | without | overhead | G-NET | limit | moves | kernels |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  constexpr double kMppsOfNs = 1000;
  const auto share = [](IsoPtrCell const& cell, std::string_view what) {
    const auto found =
        std::find_if(cell.busy.begin(), cell.busy.end(), [what](BusyShare const& entry) { return entry.what == what; });
    return found == cell.busy.end() ? std::string("-") : fmt::format("{:.0f} %", kPercent * found->share);
  };
  for (IsoPtrCell const* cell : all) {
    add("| {} | {} | {:.3f} | {:.3f} | {} | {} | {} | {} | {} |\n", cell->name, cell->wire_bytes,
        kMppsOfNs / over(*cell, &IsoPtrRepeat::checked_ns).median,
        kMppsOfNs / over(*cell, &IsoPtrRepeat::unchecked_ns).median, percent_text(overhead_percent(*cell)), kGnet,
        limit_of(results_, *cell), share(*cell, "moves"), share(*cell, "kernels"));
  }
  add("\n");
  chart(IsoPtrPart::kChains, 0, "chains", "Chains of G-NET");
}

PageText Page::make() {
  head();
  failures();
  bars();
  kernels();
  chains();
  return take();
}

}  // namespace

PageText isoptr_page(IsoPtrResults const& results) { return Page(results).make(); }

}  // namespace catena::bench
