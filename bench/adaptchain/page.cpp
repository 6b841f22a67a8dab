// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page.hpp"

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/modes.hpp"
#include "bench/chains/chains.hpp"
#include "bench/chains/reference.hpp"
#include "bench/chains/timeline.hpp"
#include "bench/common/chart.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace catena::bench {
namespace {

constexpr double kMega = 1e6;
constexpr double kPercent = 100;

/// What the paper's text says of a chain, against its baseline, which is G-NET: our mode copy.
struct PaperFigures {
  const char* chain;
  const char* figures;         ///< their numbers
  const char* throughput;      ///< of AdaptChain against the baseline
  const char* bytes_saved;     ///< host to device, the same
  const char* pushdown_gain;   ///< throughput with transfer pushdown against without
  const char* pushdown_bytes;  ///< host to device bytes that pushdown saves besides
};
constexpr std::array<PaperFigures, 5> kPaper{{
    {"C1", "9", "up to 3.2x", "13.9 % (64 B) .. 49.1 % (1518 B)", nullptr, nullptr},
    {"C2", "10", "+14.1 % .. 2.8x", "5.6 .. 48.9 %", nullptr, nullptr},
    {"C3", "11, 12", "+10 % .. 2.3x", "13.9 .. 49.1 %", nullptr, nullptr},
    {"C4", "13", "+3.1 % .. 3.0x without pushdown", "11.8 .. 48.9 % without pushdown", "+1.8 .. 58.4 %",
     "6.3 % at 64 B"},
    {"C5", "14", "up to 2.8x", "up to 49.0 %", "+0.7 .. 58.3 %", "0.3 .. 6.0 %"},
}};

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

using Sizes = std::vector<std::uint32_t>;
using Value = std::function<Spread(Cell const&)>;

Spread bytes_to_device(Cell const& cell) { return over(cell, &Repeat::bytes_to_device); }
Spread bytes_to_host(Cell const& cell) { return over(cell, &Repeat::bytes_to_host); }

std::vector<std::string> labels_of(Sizes const& sizes) {
  std::vector<std::string> labels;
  for (const std::uint32_t bytes : sizes) {
    labels.push_back(std::to_string(bytes));
  }
  return labels;
}

Bar bar_of(Spread const& spread) { return {spread.median, spread.low, spread.high}; }

class Page final : private MarkdownPage {
 public:
  Page(Results const& results, Sizes const& sizes) : results_(results), sizes_(sizes) {}

  PageText make();

 private:
  bool has(Part part, std::string_view chain = {}) const {
    return std::any_of(results_.cells.begin(), results_.cells.end(), [&](Cell const& cell) {
      return cell.part == part && (chain.empty() || cell.chain == chain) && !cell.repeats.empty();
    });
  }
  /// The range over the sizes of one mode's value divided by another's; "-" where there is nothing.
  std::string ratios(Part part, std::string_view chain, std::string_view mode, std::string_view other,
                     Value const& value, bool saved) const;

  void anchors();
  void head();
  std::string ratio(Part part, std::string_view chain, std::uint32_t bytes, const char* mode, const char* base) const;
  double ceiling(Cell const& cell) const;
  void comparisons();
  void summary();
  void source();
  void chain(Part part, PaperChain const& chain, std::string const& figure_name);
  void stages();
  void units();
  void latency();
  void timelines();
  void bars(Part part, PaperChain const& chain, std::string const& file, std::string const& what, Value const& value,
            bool normalized);

  Results const& results_;
  Sizes const& sizes_;
};

std::string Page::ratios(Part part, std::string_view chain, std::string_view mode, std::string_view other,
                         Value const& value, bool saved) const {
  std::vector<double> found;
  for (const std::uint32_t bytes : sizes_) {
    Cell const* ours = find(results_, part, chain, mode, bytes);
    Cell const* theirs = find(results_, part, chain, other, bytes);
    if (ours != nullptr && theirs != nullptr && value(*theirs).median > 0) {
      const double ratio = value(*ours).median / value(*theirs).median;
      found.push_back(saved ? kPercent * (1 - ratio) : ratio);
    }
  }
  if (found.empty()) {
    return "-";
  }
  const auto [low, high] = std::minmax_element(found.begin(), found.end());
  return saved ? fmt::format("{:.1f} .. {:.1f} %", *low, *high) : fmt::format("{:.2f}x .. {:.2f}x", *low, *high);
}

/// Which machines measured, and how fast each was at the same few things.
void Page::anchors() {
  add("Measured in {} runs. Each began with the same three measurements; a table is of one run.\n\n"
      "| run | machine | device | copies, GB/s each way | C4, adaptive, one copy of the chain | command |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      results_.runs.size());
  for (std::size_t run = 0; run < results_.runs.size(); ++run) {
    RunOrigin const& origin = results_.runs[run];
    std::string speeds;
    for (Cell const& cell : results_.cells) {
      if (cell.part == Part::kAnchor && cell.run == run && !cell.repeats.empty()) {
        speeds += fmt::format("{}{} B: {:.1f} Mpps, {:.1f} Gbps", speeds.empty() ? "" : "; ", cell.wire_bytes,
                              packets_per_s(cell).median / kMega, gbps(cell).median);
      }
    }
    add("| {} | {} | {} | {:.1f} | {} | `{}` |\n", run + 1, origin.machine, origin.device, origin.copy_gb_per_s, speeds,
        origin.command);
  }
  add("\n");
}

void Page::head() {
  add("# The comparisons of AdaptChain on this machine\n\n"
      "Written by `catena-bench adaptchain`; `docs/performance.md` says how it measures. The paper is\n"
      "\"AdaptChain: Adaptive Data Sharing and Synchronization for NFV Systems on Heterogeneous Architectures\"\n"
      "(IEEE TPDS 2024), whose machine has a Titan X (Pascal), a Xeon E5-2695 v4 and a 100 Gbps link; figures beside\n"
      "ours are those of its text.\n\n"
      "| | |\n| --- | --- |\n| plans by | {} |\n| commit | {} |\n"
      "| runs | {:.6g} s each, a quarter of it warm-up; median (smallest .. largest) of the repeats |\n"
      "| tuning | `{}` |\n"
      "| output checked | {} sampled packets against the chain on the CPU, {} different |\n\n",
      results_.costs_from, results_.commit, results_.seconds, results_.tuning, results_.samples_compared(),
      results_.samples_different());
  anchors();
  add("Sizes are those of arriving frames with FCS (Catena's own figures are without its 4 bytes), and Gbps counts\n"
      "them so. Modes: `copy` stands for G-NET, the paper's baseline; `shared` for Gaviss; `adaptive` for AdaptChain.\n"
      "`staged`: everything is batched by the CPU, as in the papers; else plans may use every transfer method.\nIPsec "
      "encrypts in every chain unless it says decrypt, so NFs behind it meet ESP: the NIDS searches ciphertext,\n"
      "and C3's load balancer finds no connection.\n\n");
  for (std::string const& note : results_.notes) {
    add("{}\n\n", note);
  }
  if (results_.failed_cells() > 0) {
    add("**{} measurements failed:**\n\n", results_.failed_cells());
    for (Cell const& cell : results_.cells) {
      if (!cell.error.empty()) {
        add("- {} {} {} {} B: {}\n", to_string(cell.part), cell.chain, cell.mode, cell.wire_bytes, cell.error);
      }
    }
    add("\n");
  }
}

/// Medians of one mode divided by those of another; "-" where one is missing.
std::string Page::ratio(Part part, std::string_view chain, std::uint32_t bytes, const char* mode,
                        const char* base) const {
  Cell const* ours = find(results_, part, chain, mode, bytes);
  Cell const* theirs = find(results_, part, chain, base, bytes);
  if (ours == nullptr || theirs == nullptr || packets_per_s(*theirs).median <= 0) {
    return "-";
  }
  return fmt::format("{:.2f}", packets_per_s(*ours).median / packets_per_s(*theirs).median);
}

void Page::comparisons() {
  if (!has(Part::kThroughput) && !has(Part::kDecrypt)) {
    return;
  }
  add("## Plan and transfer method apart\n\nThroughput divided by that of another mode, medians. *Plan*: `adaptive, "
      "staged` by `copy, staged`. *Method*:\n`copy` by `copy, staged`. *Both*: `adaptive` by `copy, staged`. The "
      "other columns: `adaptive` by `copy`, by `shared`, and\nby itself without pushdown.\n\n"
      "| chain | frame | plan | method | both | over copy | over shared | pushdown |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (PaperChain const& entry : paper_chains()) {
    const Part part = entry.esp_input ? Part::kDecrypt : Part::kThroughput;
    for (const std::uint32_t bytes : has(part, entry.name) ? sizes_ : Sizes()) {
      const auto over = [&](const char* mode, const char* base) { return ratio(part, entry.name, bytes, mode, base); };
      add("| {} | {} | {} | {} | {} | {} | {} | {} |\n", entry.name, bytes, over(kAdaptiveStaged, kCopyStaged),
          over(kCopy, kCopyStaged), over(kAdaptive, kCopyStaged), over(kAdaptive, kCopy), over(kAdaptive, kShared),
          over(kAdaptive, kWithoutPushdown));
    }
  }
  add("\n");
}

void Page::summary() {
  if (!has(Part::kThroughput)) {
    return;
  }
  add("## Beside the paper\n\nOver the sizes measured, everything staged as in the paper: `adaptive, staged` against "
      "`copy, staged`.\n\n"
      "| chain | figure | throughput, paper | throughput, here | bytes to the device saved, paper | saved, here |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (PaperFigures const& paper : kPaper) {
    if (has(Part::kThroughput, paper.chain)) {
      add("| {} | {} | {} | {} | {} | {} |\n", paper.chain, paper.figures, paper.throughput,
          ratios(Part::kThroughput, paper.chain, kAdaptiveStaged, kCopyStaged, packets_per_s, false), paper.bytes_saved,
          ratios(Part::kThroughput, paper.chain, kAdaptiveStaged, kCopyStaged, bytes_to_device, true));
    }
  }
  add("\n");
  if (has(Part::kThroughput, "C4") || has(Part::kThroughput, "C5")) {
    add("With transfer pushdown against without, every transfer method allowed:\n\n"
        "| chain | throughput, paper | throughput, here | bytes saved, paper | saved, here |\n"
        "| --- | --- | --- | --- | --- |\n");
    for (PaperFigures const& paper : kPaper) {
      if (paper.pushdown_gain != nullptr && has(Part::kThroughput, paper.chain)) {
        add("| {} | {} | {} | {} | {} |\n", paper.chain, paper.pushdown_gain,
            ratios(Part::kThroughput, paper.chain, kAdaptive, kWithoutPushdown, packets_per_s, false),
            paper.pushdown_bytes,
            ratios(Part::kThroughput, paper.chain, kAdaptive, kWithoutPushdown, bytes_to_device, true));
      }
    }
    add("\n");
  }
}

/// What the source gives at most, in Gbps, with as many copies and threads; 0 where it was not measured.
double Page::ceiling(Cell const& cell) const {
  const char* chain = empty_chain(cell.part == Part::kDecrypt).name;
  for (Cell const& source : results_.cells) {
    if (source.part == Part::kSource && source.chain == chain && source.wire_bytes == cell.wire_bytes &&
        source.replicas == cell.replicas) {
      return gbps(source).median;
    }
  }
  return 0;
}

/// The stage that was busy for the largest part of its time, as text: "vpn 97 %".
std::string busiest_stage(Cell const& cell, double seconds) {
  Repeat const& repeat = cell.repeats.back();
  const auto most = std::max_element(repeat.stage_seconds.begin(), repeat.stage_seconds.end(),
                                     [](auto const& a, auto const& b) { return a.second < b.second; });
  return most == repeat.stage_seconds.end()
             ? "-"
             : fmt::format("{} {:.0f} %", most->first,
                           std::min(kPercent, kPercent * most->second / (seconds * cell.replicas)));
}

void Page::source() {
  if (!has(Part::kSource)) {
    return;
  }
  add("## What the source gives\n\nrx and tx without NFs. As many copies of a chain cannot be faster.\n\n"
      "| source | frame | copies | Mpps | Gbps |\n| --- | --- | --- | --- | --- |\n");
  for (Cell const& cell : results_.cells) {
    if (cell.part == Part::kSource && !cell.repeats.empty()) {
      const Spread speed = gbps(cell);
      add("| {} | {} | {} | {:.3f} | {:.2f} ({:.2f} .. {:.2f}) |\n",
          cell.chain == empty_chain(true).name ? "ESP, whole frames" : "replay", cell.wire_bytes, cell.replicas,
          packets_per_s(cell).median / kMega, speed.median, speed.low, speed.high);
    }
  }
  add("\n");
}

void Page::bars(Part part, PaperChain const& chain, std::string const& file, std::string const& what,
                Value const& value, bool normalized) {
  BarChart chart;
  chart.title = concat(chain.name, ": ", what);
  chart.x_title = "frame with FCS, bytes";
  chart.y_title = what;
  chart.labels = labels_of(sizes_);
  for (SyncMode const& mode : kModes) {
    BarSeries series{mode.name, {}};
    for (const std::uint32_t bytes : sizes_) {
      Cell const* cell = find(results_, part, chain.name, mode.name, bytes);
      Cell const* base = find(results_, part, chain.name, kCopyStaged, bytes);
      Bar bar = cell != nullptr ? bar_of(value(*cell)) : Bar{};
      if (normalized) {
        const double one = base != nullptr ? value(*base).median : 0;
        bar = one > 0 ? Bar{bar.value / one, 0, 0} : Bar{};
      }
      series.bars.push_back(bar);
    }
    chart.series.push_back(std::move(series));
  }
  figure(file, chart);
}

void Page::chain(Part part, PaperChain const& chain, std::string const& figure_name) {
  if (!has(part, chain.name)) {
    return;
  }
  add("## {}: {}{}\n\n", chain.name, chain.title(), figure_name.empty() ? "" : concat(", figure ", figure_name));
  const auto measured = std::find_if(results_.cells.begin(), results_.cells.end(), [&](Cell const& cell) {
    return cell.part == part && cell.chain == chain.name && !cell.repeats.empty();
  });
  add("Run {}. ", measured->run + 1);
  if (chain.esp_input) {
    add("Not in the paper's figures: real ESP comes in, and is decrypted. Sizes are those of the frames inside. Every\n"
        "{}th flow is a connection to the load balancer's service, every {}th packet holds a string of the NIDS's "
        "rules.\n\n",
        kServiceEvery, kMatchEvery);
  }
  std::string file(chain.name);
  std::transform(file.begin(), file.end(), file.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  bars(part, chain, file + "-throughput", "throughput, Gbps", gbps, false);
  bars(part, chain, file + "-to-device", "bytes to the device; copy, staged = 1", bytes_to_device, true);
  if (std::string_view(chain.name) == "C3") {
    bars(part, chain, file + "-to-host", "bytes to the host; copy, staged = 1", bytes_to_host, true);
  }
  add("| frame | mode | copies | Mpps | Gbps | source, Gbps | busiest stage | planned ns | measured ns | to device, B "
      "| "
      "to host, B | p50 us | p95 us | p99 us | dropped |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::uint32_t bytes : sizes_) {
    for (SyncMode const& mode : kModes) {
      Cell const* cell = find(results_, part, chain.name, mode.name, bytes);
      if (cell == nullptr) {
        continue;
      }
      const Spread speed = gbps(*cell);
      std::uint64_t dropped = 0;
      for (Repeat const& repeat : cell->repeats) {
        dropped += repeat.dropped;
      }
      constexpr double kNsPerSecond = 1e9;
      add("| {} | {} | {} | {:.3f} | {:.2f} ({:.2f} .. {:.2f}) | {:.0f} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | "
          "{:.0f} | {:.0f} | {:.0f} | {} |\n",
          bytes, mode.name, cell->replicas, packets_per_s(*cell).median / kMega, speed.median, speed.low, speed.high,
          ceiling(*cell), busiest_stage(*cell, results_.seconds), cell->planned_ns,
          kNsPerSecond / std::max(1.0, packets_per_s(*cell).median), bytes_to_device(*cell).median,
          bytes_to_host(*cell).median, over(*cell, &Repeat::p50_us).median, over(*cell, &Repeat::p95_us).median,
          over(*cell, &Repeat::p99_us).median, dropped);
    }
  }
  add("\nLatencies are those of a full pool: the source does not wait. Copies of the chain have threads of their own "
      "for\n"
      "every NF; their number is the one of 1 to 3 that was fastest. *Source*: what as many copies of rx and tx alone "
      "do.\n"
      "*Planned*: what the plan reckons a packet costs the bus, the CPU and the device, added up.\n\n");
}

void Page::stages() {
  PaperChain const& c3 = **find_chain("C3");
  if (!has(Part::kThroughput, c3.name)) {
    return;
  }
  add("## Where C3's time goes, figure 11(b)\n\n"
      "Share of each stage in the time that workers were busy, at full speed (the paper: time of a batch at 10 Gbps,\n"
      "which AdaptChain shortens by 13.6 .. 63.7 %). What a device does meanwhile is not in it: a GPU stage is busy\n"
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
  for (const std::uint32_t bytes : sizes_) {
    for (const char* mode : {kCopyStaged, kAdaptive}) {
      Cell const* cell = find(results_, Part::kThroughput, c3.name, mode, bytes);
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
      constexpr double kNsPerSecond = 1e9;
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
}

void Page::units() {
  if (!has(Part::kUnits)) {
    return;
  }
  add("## Unit sizes with C4, figure 15\n\nPaper: stable from 16 to 1024 packets a unit, up to 40 % lower with 4; p50\n"
      "at 10 Gbps 3.8 ms at 16, 4.6 ms at 1024, 9.9 ms at 4.\n\n");
  BarChart chart;
  chart.title = "C4, adaptive: throughput by unit size";
  chart.x_title = "frame with FCS, bytes";
  chart.y_title = "Gbps";
  chart.labels = labels_of(sizes_);
  add("| packets a unit | frame | Gbps |\n| --- | --- | --- |\n");
  for (const std::uint32_t units : kUnitSizes) {
    BarSeries series{concat(units, " packets"), {}};
    for (const std::uint32_t bytes : sizes_) {
      Cell const* cell = find(results_, Part::kUnits, "C4", kAdaptive, bytes, units);
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
    if (Cell const* cell = find(results_, Part::kLatency, "C4", kAdaptive, kLatencyWireBytes, units, kLatencyGbps[0]);
        cell != nullptr) {
      lines.series.push_back({concat(units, " packets"), cell->cdf_us});
    }
  }
  if (!lines.series.empty()) {
    figure("c4-unit-latency", lines);
  }
}

void Page::latency() {
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
        Cell const* cell = find(results_, Part::kLatency, paper.chain, mode, kLatencyWireBytes, 0, rate);
        if (cell == nullptr) {
          continue;
        }
        constexpr double kReached = 0.98;
        const double left = gbps(*cell).median;
        const Spread p50 = over(*cell, &Repeat::p50_us);
        add("| {} | {} Gbps | {} | {:.2f}{} | {:.1f} ({:.1f} .. {:.1f}) | {:.1f} | {:.1f} |\n", paper.chain, rate, mode,
            left, left < kReached * rate ? " **saturated**" : "", p50.median, p50.low, p50.high,
            over(*cell, &Repeat::p95_us).median, over(*cell, &Repeat::p99_us).median);
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
        if (Cell const* cell = find(results_, Part::kLatency, paper.chain, mode, kLatencyWireBytes, 0, rate);
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

void Page::timelines() {
  bool is_first = true;
  for (const double rate : kLatencyGbps) {
    Cell const* cell = find(results_, Part::kLatency, kTimelineChain, kTimelineMode, kLatencyWireBytes, 0, rate);
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

PageText Page::make() {
  head();
  comparisons();
  summary();
  source();
  for (PaperFigures const& paper : kPaper) {
    chain(Part::kThroughput, **find_chain(paper.chain), paper.figures);
  }
  stages();
  for (PaperChain const& entry : paper_chains()) {
    if (entry.esp_input) {
      chain(Part::kDecrypt, entry, "");
    }
  }
  units();
  latency();
  timelines();
  return take();
}

}  // namespace

PageText paper_page(Results const& results, std::vector<std::uint32_t> const& wire_bytes) {
  return Page(results, wire_bytes).make();
}

}  // namespace catena::bench
