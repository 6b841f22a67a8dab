// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/page.hpp"

#include "bench/chains/chains.hpp"
#include "bench/chains/timeline.hpp"
#include "bench/common/chart.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace catena::bench {
namespace {

using share::Mode;

constexpr double kPercent = 100;
constexpr double kMega = 1e6;
constexpr double kGiga = 1e9;
constexpr double kBitsPerByte = 8;
constexpr std::uint32_t kPreambleAndGap = 20;  // bytes of a frame on the wire besides its own
constexpr std::uint32_t kFewUnits = 32;
constexpr std::uint32_t kFigureBytes = 512;  // of the paper's figures of single NFs

/// What the paper says of a chain, in percent.
struct Paper {
  const char* chain;
  double over_temporal;  ///< figure 11, at best
};
constexpr std::array<Paper, 4> kPaper{{{"S_a", 23.8}, {"S_b", 25.9}, {"S_c", 21.5}, {"S_d", 70.8}}};
/// Figures 13 and 14, averages over the chains: the worst and the best.
constexpr std::pair<double, double> kOverFair{16.7, 34.0};
constexpr std::pair<double, double> kOverUncoordinated{50.8, 130.1};

std::string percent_text(Spread const& spread) {
  return fmt::format("{:+.1f} % ({:+.1f} .. {:+.1f})", spread.median, spread.low, spread.high);
}

/// Of so many frames a second on the wire.
double gbps(double packets_per_s, std::uint32_t wire_bytes) {
  return packets_per_s * (wire_bytes + kPreambleAndGap) * kBitsPerByte / kGiga;
}

using Point = std::pair<double, double>;

/// A line of what `point_of` makes of the NF's kernels by themselves, where it makes something and frames are those of
/// the paper's figures.
template <typename PointOf>
void add_kernels(GnetNf const& nf, std::string name, LineChart& chart, PointOf point_of) {
  LineSeries series{std::move(name), {}};
  for (profile::KernelPoint const& kernel : nf.times.kernels) {
    if (const std::optional<Point> point = point_of(kernel); point && nf.wire_bytes == kFigureBytes) {
      series.points.push_back(*point);
    }
  }
  if (!series.points.empty()) {
    std::sort(series.points.begin(), series.points.end());
    chart.series.push_back(std::move(series));
  }
}

class Page final : private MarkdownPage {
 public:
  explicit Page(GnetResults const& results) : results_(results) {}
  PageText make();

 private:
  void head();
  void failures();
  void bars();
  void over_temporal(Paper const& paper, Mode mode);
  void averages(std::uint32_t units);
  void table(std::vector<GnetCell> const& cells, bool is_latency);
  void throughput_chart(std::uint32_t units);
  void models();
  void kernel_chart();
  void host_and_gpu();
  void batch_chart(bool is_throughput);
  void conflicts();
  void latency_chart();
  void growing();

  GnetResults const& results_;
};

void Page::head() {
  add("# How the NFs of a chain share a GPU\n\n"
      "Written by `catena-bench gnet`; `docs/performance.md` says how it measures. Beside ours are the figures of\n"
      "\"G-NET: Effective GPU Sharing in NFV Systems\" (NSDI 2018), on its own machine: a GPU of 28 streaming "
      "multiprocessors.\n"
      "The chains encrypt; the paper does not say which way its IPsec gateway works.\n\n"
      "| way | which part an NF has | packets of a launch |\n| --- | --- | --- |\n"
      "| scheduled | as the model of its cost asks for, so that all NFs are equally fast | as few as do |\n"
      "| fair | all the same | as many as end within the limit of 1 ms |\n"
      "| uncoordinated | all of it, beside the others | the same |\n"
      "| temporal | all of it, one kernel of any NF at a time; what moves packets overlaps with kernels | the same "
      "|\n\n"
      "| | |\n| --- | --- |\n| device | {} |\n| parts | {}, in steps of {} of {} compute units |\n| machine | {} |\n| "
      "commit | {} |\n| command | `{}` |\n| runs | {} of {} s each, the ways in turn within each repeat |\n| tuning | "
      "`{}` |\n| outputs | {} packets compared with the CPU's, {} different |\n\n"
      "Values are medians; in parentheses the smallest and the largest of the repeats. Machines of one kind differ by\n"
      "up to a third.\n\n",
      results_.device, results_.parts, results_.unit_step, results_.all_units, results_.machine, results_.commit,
      results_.command, results_.repeats, results_.seconds, results_.tuning, results_.samples_compared(),
      results_.samples_different());
}

void Page::failures() {
  for (auto const& [list, cells] : results_.lists()) {
    for (GnetCell const& cell : *cells) {
      if (!cell.error.empty()) {
        add("**{} of {} B on {} compute units could not be measured: {}**\n\n", cell.chain, cell.wire_bytes, cell.units,
            cell.error);
      }
    }
  }
}

/// Of the cells of a chain, the one where `mode` is furthest above temporal sharing. The paper's spatial sharing is the
/// scheduled one.
void Page::over_temporal(Paper const& paper, Mode mode) {
  std::optional<std::pair<Spread, GnetCell const*>> best;
  for (GnetCell const& cell : results_.cells) {
    const Spread above = above_percent(cell, mode, Mode::kTemporal, &ModeRuns::packets_per_s);
    if (cell.chain == paper.chain && is_measured(cell) && (!best || above.median > best->first.median)) {
      best = {above, &cell};
    }
  }
  if (best) {
    add("| {}: {} above temporal, throughput | {:+.1f} % at best | {} | {} B, {} units | {} |\n", paper.chain,
        to_string(mode), paper.over_temporal, percent_text(best->first), best->second->wire_bytes, best->second->units,
        best->first.median >= paper.over_temporal ? "yes" : "no");
  }
}

void Page::bars() {
  add("## Against the paper's figures\n\n| what | paper | here | where | met |\n| --- | ---: | ---: | --- | --- |\n");
  for (Paper const& paper : kPaper) {
    std::optional<std::pair<Spread, GnetCell const*>> tail;
    for (const Mode mode : {Mode::kScheduled, Mode::kUncoordinated}) {
      over_temporal(paper, mode);
    }
    for (GnetCell const& cell : results_.latency) {
      const Spread above = above_percent(cell, Mode::kTemporal, Mode::kScheduled, &ModeRuns::p95_us);
      if (cell.chain == paper.chain && is_measured(cell) && (!tail || above.median > tail->first.median)) {
        tail = {above, &cell};
      }
    }
    if (tail) {
      add("| {}: temporal above scheduled, p95 | +25.5 .. +44.3 % | {} | {} B, {:.1f} Mpps offered | {} |\n",
          paper.chain, percent_text(tail->first), tail->second->wire_bytes, tail->second->offered_per_s / kMega,
          tail->first.median >= 44 ? "yes" : "no");
    }
  }
  add("\n");
  averages(kFewUnits);
  averages(results_.all_units);
}

void Page::averages(std::uint32_t units) {
  std::vector<std::string> rows;
  for (auto const& [mode, paper] :
       {std::pair{Mode::kFair, kOverFair}, std::pair{Mode::kUncoordinated, kOverUncoordinated}}) {
    double worst = 0;
    double best = 0;
    bool is_first = true;
    std::string list;
    for (Paper const& entry : kPaper) {
      double sum = 0;
      int count = 0;
      for (GnetCell const& cell : results_.cells) {
        if (cell.chain == entry.chain && cell.units == units && is_measured(cell)) {
          sum += above_percent(cell, Mode::kScheduled, mode, &ModeRuns::packets_per_s).median;
          ++count;
        }
      }
      if (count == 0) {
        continue;
      }
      const double average = sum / count;
      list += fmt::format("{}{} {:+.1f} %", list.empty() ? "" : ", ", entry.chain, average);
      worst = is_first ? average : std::min(worst, average);
      best = is_first ? average : std::max(best, average);
      is_first = false;
    }
    if (!is_first) {
      rows.push_back(fmt::format("| {} | {:+.1f} .. {:+.1f} % | {:+.1f} .. {:+.1f} %: {} | {} |\n", to_string(mode),
                                 paper.first, paper.second, worst, best, list,
                                 worst >= paper.first && best >= paper.second ? "yes" : "no"));
    }
  }
  if (rows.empty()) {
    return;
  }
  add("Scheduled above other ways on {} compute units, throughput, average over sizes of each chain, the worst chain "
      "and "
      "the\nbest:\n\n| above | paper | here | met |\n| --- | ---: | --- | --- |\n",
      units);
  for (std::string const& row : rows) {
    add("{}", row);
  }
  add("\n");
}

void Page::table(std::vector<GnetCell> const& cells, bool is_latency) {
  for (GnetCell const& cell : cells) {
    if (!is_measured(cell)) {
      continue;
    }
    const std::string load = is_latency ? fmt::format(", {:.2f} Mpps offered", cell.offered_per_s / kMega) : "";
    add("### {}, {} B, {} compute units{}\n\n| way | Mpps | Gbps | p50 us | p95 us | parts |\n| --- | ---: | ---: | "
        "---: | "
        "---: | --- |\n",
        cell.chain, cell.wire_bytes, cell.units, load);
    for (ModeRuns const& runs : cell.modes) {
      const Spread speed = spread_of(runs.packets_per_s);
      const Spread p50 = spread_of(runs.p50_us);
      const Spread p95 = spread_of(runs.p95_us);
      std::string parts;
      for (runtime::PartReport const& part : runs.parts) {
        parts += fmt::format("{}{} {} x {}", parts.empty() ? "" : ", ", part.nf, part.units, part.launch_packets);
      }
      add("| {} | {:.2f} ({:.2f} .. {:.2f}) | {:.1f} | {:.0f} ({:.0f} .. {:.0f}) | {:.0f} ({:.0f} .. {:.0f}) | {} |\n",
          to_string(runs.mode), speed.median / kMega, speed.low / kMega, speed.high / kMega,
          gbps(speed.median, cell.wire_bytes), p50.median, p50.low, p50.high, p95.median, p95.low, p95.high, parts);
    }
    std::string busy;
    for (std::size_t i = 0; i < std::min<std::size_t>(cell.busy.size(), 4); ++i) {
      busy += fmt::format("{}{} {:.0f} %", busy.empty() ? "" : ", ", cell.busy[i].what, kPercent * cell.busy[i].share);
    }
    add("\nBusy in a scheduled run of its own: {}.\n\n", busy.empty() ? "-" : busy);
  }
}

void Page::throughput_chart(std::uint32_t units) {
  BarChart chart;
  chart.title = concat("Throughput on ", units, " compute units");
  chart.x_title = "chain and size of frames";
  chart.y_title = "Mpps";
  for (const Mode mode : kShareModes) {
    chart.series.push_back({std::string(to_string(mode)), {}});
  }
  for (GnetCell const& cell : results_.cells) {
    if (cell.units != units || !is_measured(cell)) {
      continue;
    }
    chart.labels.push_back(concat(cell.chain, " ", cell.wire_bytes));
    for (std::size_t i = 0; i < kShareModes.size(); ++i) {
      const Spread speed = spread_of(find(cell, kShareModes[i])->packets_per_s);
      chart.series[i].bars.push_back({speed.median / kMega, speed.low / kMega, speed.high / kMega});
    }
  }
  figure(concat("throughput-", units), chart);
}

void Page::models() {
  add("## The model\n\nThe time of a launch of B packets on each of N compute units is k1 B + b1 for the kernel and k2 "
      "N B "
      "+ b2 for the\ntransfers, and C besides.\n\n| NF | B | b1 us | k1 ns | R2 | b2 us | k2 ns | R2 | C us | up to "
      "|\n| "
      "--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (GnetNf const& nf : results_.nfs) {
    if (!nf.why_not.empty()) {
      add("| {} | {} | not measured: {} | | | | | | | |\n", nf.name, nf.wire_bytes, nf.why_not);
      continue;
    }
    share::NfCost const& cost = nf.model.cost;
    add("| {} | {} | {:.2f} | {:.2f} | {:.4f} | {:.2f} | {:.3f} | {:.4f} | {:.2f} | {} |\n", nf.name, nf.wire_bytes,
        cost.kernel.intercept / 1000, cost.kernel.slope, nf.model.kernel.fit.r_squared, cost.transfer.intercept / 1000,
        cost.transfer.slope, nf.model.transfer.fit.r_squared, cost.overhead_ns / 1000, cost.max_packets_per_sm);
  }
  add("\n");
}

/// Figure 3 of the paper: a kernel over its compute units.
void Page::kernel_chart() {
  LineChart chart;
  chart.title = "Time of a kernel over 4096 packets of 512 B";
  chart.x_title = "compute units";
  chart.y_title = "us";
  constexpr std::uint32_t kPackets = 4096;
  for (GnetNf const& nf : results_.nfs) {
    add_kernels(nf, nf.name, chart, [](profile::KernelPoint const& point) {
      return point.packets == kPackets ? std::optional(Point(point.sms, point.kernel_ns / 1000)) : std::nullopt;
    });
  }
  figure("kernel-units", chart);
}

/// Figure 1 of the paper: what a GPU does of an NF, and how many cores would have to feed it.
void Page::host_and_gpu() {
  add("## A GPU and the cores that feed it\n\nThe kernel alone over the largest launch that was measured, on all of "
      "the "
      "GPU; and what one core does into staging and out\nof it, without rx, tx and what is common to a launch (figure "
      "1: "
      "a core is 5 to 65 times slower than the GPU).\n\n| NF | B | kernel Mpps | Gbps | a core Mpps | GPU / core "
      "|\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (GnetNf const& nf : results_.nfs) {
    if (!nf.why_not.empty() || nf.times.launches.empty() || nf.model.host_ns_per_packet <= 0) {
      continue;
    }
    profile::LaunchPoint const& largest = nf.times.launches.back();
    const double gpu = largest.packets / largest.kernel_ns * 1e9;
    const double core = 1e9 / nf.model.host_ns_per_packet;
    add("| {} | {} | {:.0f} | {:.0f} | {:.1f} | {:.1f} |\n", nf.name, nf.wire_bytes, gpu / kMega,
        gbps(gpu, nf.wire_bytes), core / kMega, gpu / core);
  }
  add("\n");
}

/// Figure 7: an NF over the packets of a launch, on one compute unit or as few as there can be.
void Page::batch_chart(bool is_throughput) {
  LineChart chart;
  chart.title = concat(is_throughput ? "Throughput of a kernel" : "Time of a kernel", " on the smallest part, 512 B");
  chart.x_title = "packets of a launch";
  chart.y_title = is_throughput ? "Mpps" : "us";
  for (GnetNf const& nf : results_.nfs) {
    const std::uint32_t units = nf.model.kernel_sms;
    add_kernels(nf, concat(nf.name, ", ", units, " units"), chart, [&](profile::KernelPoint const& point) {
      const double value = is_throughput ? point.packets / point.kernel_ns * 1000 : point.kernel_ns / 1000;
      return point.sms == units ? std::optional(Point(point.packets, value)) : std::nullopt;
    });
  }
  figure(is_throughput ? "batch-throughput" : "batch-time", chart);
}

/// Figure 12: IPsec and NIDS beside each other, with what crosses the bus and what waits for it.
void Page::conflicts() {
  for (GnetCell const& cell : results_.cells) {
    if (cell.chain != kPaper.front().chain || cell.units != results_.all_units || cell.wire_bytes != kFigureBytes ||
        cell.timeline.empty()) {
      continue;
    }
    TimeChart chart;
    chart.title = concat(cell.chain, ", scheduled, ", cell.wire_bytes, " B: a launch waits where it has no box");
    chart.x_title = "us";
    chart.kinds = timeline_kinds();
    chart.length = kTimelineUs;
    chart.rows = cell.timeline;
    figure("conflicts", chart);
  }
}

/// Figure 17.
void Page::latency_chart() {
  for (GnetCell const& cell : results_.latency) {
    if (!is_measured(cell)) {
      continue;
    }
    LineChart chart;
    chart.title =
        fmt::format("Latency of {}, {} B, {:.1f} Mpps", cell.chain, cell.wire_bytes, cell.offered_per_s / kMega);
    chart.x_title = "us";
    chart.y_title = "% of packets";
    for (ModeRuns const& runs : cell.modes) {
      chart.series.push_back({std::string(to_string(runs.mode)), runs.cdf_us});
    }
    figure(concat("latency-", cell.chain), chart);
  }
}

/// Figure 16.
void Page::growing() {
  LineChart chart;
  chart.title = "Latency of one to four NFs, scheduled, as fast as they go";
  chart.x_title = "us";
  chart.y_title = "% of packets";
  for (GnetCell const& cell : results_.growing) {
    if (is_measured(cell)) {
      chart.series.push_back({cell.chain, cell.modes.front().cdf_us});
    }
  }
  figure("latency-growing", chart);
}

PageText Page::make() {
  head();
  failures();
  bars();
  std::set<std::uint32_t> units;
  for (GnetCell const& cell : results_.cells) {
    units.insert(cell.units);
  }
  for (const std::uint32_t of : units) {
    throughput_chart(of);
  }
  models();
  host_and_gpu();
  kernel_chart();
  batch_chart(false);
  batch_chart(true);
  conflicts();
  add("## As fast as they go\n\n");
  table(results_.cells, false);
  if (!results_.latency.empty()) {
    add("## At a rate that every way takes\n\nAt 0.7 of what the slowest way does.\n\n");
    table(results_.latency, true);
    latency_chart();
  }
  if (!results_.growing.empty()) {
    add("## One to four NFs\n\nFrom rx to tx, with packets offered as fast as the chain takes them: full queues are in "
        "it.\n\n");
    table(results_.growing, false);
    growing();
  }
  return take();
}

}  // namespace

PageText gnet_page(GnetResults const& results) { return Page(results).make(); }

}  // namespace catena::bench
