// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/page.hpp"

#include "bench/nca/traffic.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace catena::bench {
namespace {

constexpr double kPercent = 100;
constexpr double kNsPerUs = 1000;
constexpr double kMega = 1e6;
constexpr std::size_t kTimelineBuffers = 8;
constexpr std::uint32_t kDraftStrings = 5000;
constexpr double kBarHidden = 95;
constexpr double kBarOneStream = 0.75;
constexpr double kBarFourStreams = 0.9;
constexpr double kBarRatio = 0.8;
/// What the draft measured with 5,000 strings and packets of variable size.
struct DraftRow {
  double gbps;
  double in_us;
  double kernel_us;
  double back_us;
  double iterations_per_s;
};
constexpr DraftRow kDraftNone{14.9, 903, 9784, 161, 209};
constexpr DraftRow kDraftMatching{33.02, 923, 4380, 168, 464};

enum Kind : std::size_t { kToDevice, kKernel, kToHost };

std::string size_text(NcaCell const& cell) { return cell.bytes == 0 ? "variable" : std::to_string(cell.bytes); }

std::string text_of(Spread const& spread) {
  return fmt::format("{:.2f} ({:.2f} .. {:.2f})", spread.median, spread.low, spread.high);
}

double ratio_of(NcaCell const& cell) {
  std::vector<double> ratios;
  for (NcaRepeat const& repeat : cell.repeats) {
    ratios.push_back(repeat.plain_gbps > 0 ? repeat.gbps / repeat.plain_gbps : 0);
  }
  return spread_of(std::move(ratios)).median;
}

bool is_measured(NcaCell const& cell) { return cell.error.empty() && !cell.repeats.empty(); }

/// The device cpu has none.
bool has_copies(NcaCell const& cell) { return over(cell, &NcaRepeat::copy).median > 0; }

std::string share_text(NcaCell const& cell, double NcaRepeat::*value) {
  const Spread share = over(cell, value);
  return has_copies(cell) ? fmt::format("{:.1f} % ({:.1f} .. {:.1f})", kPercent * share.median, kPercent * share.low,
                                        kPercent * share.high)
                          : "no copies";
}

Bar bar_of(Spread const& spread, double scale = 1) {
  return {spread.median * scale, spread.low * scale, spread.high * scale};
}

class Page final : private MarkdownPage {
 public:
  explicit Page(NcaResults const& results) : results_(results) {}
  PageText make();

 private:
  bool has(std::string_view part) const {
    return std::any_of(results_.cells.begin(), results_.cells.end(),
                       [&](NcaCell const& cell) { return cell.part == part && is_measured(cell); });
  }
  void head();
  void bars();
  void draft();
  void streams();
  void queues();
  void kernel();

  NcaResults const& results_;
};

void Page::head() {
  add("# `catena-bench nca`\n\n"
      "The measurement of draft-perumal-nfvrg-nfv-compute-acceleration-00 with libnca. Made by\n\n"
      "```\n{}\n```\n\n"
      "| | |\n| --- | --- |\n| machine | {} |\n| device | {} |\n| commit | {} |\n"
      "| buffers | {} packets |\n| a run | {} s, of which a quarter is warm-up |\n\n",
      results_.command, results_.machine, results_.device, results_.commit, results_.buffer_packets, results_.seconds);
  add("Gbps are those of packet bytes. Figures are the median of the repeats, with the smallest and the largest.\n"
      "Packets are random bytes in which no string occurs; a random string stands at a random place of exactly those\n"
      "that match. Sizes that vary are {} to {} bytes, each as likely: {} on average. Every buffer had as many "
      "matches\n"
      "as Hyperscan finds in its packets, and the first one of each stream the same ones, or the measurement "
      "failed.\n\n",
      kLeastBytes, kMaxBytes, kAverageBytes);
  for (std::string const& note : results_.notes) {
    add("{}\n\n", note);
  }
  if (results_.failed_cells() > 0) {
    add("**{} measurements failed:**\n\n", results_.failed_cells());
    for (NcaCell const& cell : results_.cells) {
      if (!cell.error.empty()) {
        add("- {}, {} strings, {} bytes, {} % matching, {} queues: {}\n", cell.part, cell.strings, size_text(cell),
            cell.matching_percent, cell.queues, cell.error);
      }
    }
    add("\n");
  }
}

void Page::bars() {
  add("| what | bar | measured |\n| --- | --- | --- |\n");
  for (NcaCell const& cell : results_.cells) {
    if (!is_measured(cell)) {
      continue;
    }
    const Spread gbps = over(cell, &NcaRepeat::gbps);
    if (cell.part == "streams" && cell.streams != 2 && results_.copies.pinned_gbps > 0) {
      add("| {} streams of {} adding threads, {} % matching, against bare copies | {}x on an H200 | {:.2f}x |\n",
          cell.streams, cell.threads, cell.matching_percent, cell.streams == 1 ? kBarOneStream : kBarFourStreams,
          gbps.median / results_.copies.pinned_gbps);
    } else if (cell.part == "queues" && cell.queues == 3 && has_copies(cell)) {
      add("| copy time hidden with 3 queues | {} % on an H200 | {:.1f} % |\n", kBarHidden,
          kPercent * over(cell, &NcaRepeat::hidden).median);
      add("| kernel time hidden with 3 queues, where kernels are shorter than copies | | {:.1f} % |\n",
          kPercent * over(cell, &NcaRepeat::kernel_hidden).median);
    } else if (cell.part == "kernel") {
      add("| the library against its kernel by itself, {} % matching | {}x on the OpenCL CPU device | {:.2f}x |\n",
          cell.matching_percent, kBarRatio, ratio_of(cell));
    }
  }
  add("\n");
}

void Page::draft() {
  if (!has("draft")) {
    return;
  }
  add("## The draft's measurement\n\n"
      "| strings | bytes | matching | Gbps | Mpps | buffers/s | one Hyperscan core, Gbps | against it | copy in, us | "
      "kernel, us | copy back, us |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (NcaCell const& cell : results_.cells) {
    if (cell.part != "draft" || !is_measured(cell)) {
      continue;
    }
    const Spread gbps = over(cell, &NcaRepeat::gbps);
    const double hyperscan = spread_of(cell.hyperscan_gbps).median;
    const double mpps = over(cell, &NcaRepeat::mpps).median;
    add("| {} | {} | {} % | {} | {:.2f} | {:.0f} | {} | {:.2f}x | {:.0f} | {:.0f} | {:.0f} |\n", cell.strings,
        size_text(cell), cell.matching_percent, text_of(gbps), mpps, mpps * kMega / results_.buffer_packets,
        text_of(spread_of(cell.hyperscan_gbps)), hyperscan > 0 ? gbps.median / hyperscan : 0, cell.batch.in_us,
        cell.batch.kernel_us, cell.batch.back_us);
  }
  for (auto const& [percent, row] : {std::pair(0, kDraftNone), std::pair(35, kDraftMatching)}) {
    add("| {}, the draft | variable | {} % | {} | | {} | | | {} | {} | {} |\n", kDraftStrings, percent, row.gbps,
        row.iterations_per_s, row.in_us, row.kernel_us, row.back_us);
  }
  add("\nSpeeds are of {} streams with {} adding threads each; times are medians of buffers by themselves, one stream "
      "with one queue.\n\n",
      results_.cells.front().streams, results_.cells.front().threads);
}

void Page::streams() {
  if (!has("streams")) {
    return;
  }
  add("## Streams, and what the bus gives\n\n"
      "Bare copies of {} packets of {} bytes to the device, one after another: {:.1f} Gbps from pinned memory, {:.1f} "
      "from pageable (the draft: pinned is 3x as fast).\n\n"
      "| streams | adding threads of each | matching | Gbps | against bare copies |\n| --- | --- | --- | --- | --- |\n",
      results_.buffer_packets, kAverageBytes, results_.copies.pinned_gbps, results_.copies.pageable_gbps);
  for (NcaCell const& cell : results_.cells) {
    if (cell.part == "streams" && is_measured(cell)) {
      const Spread gbps = over(cell, &NcaRepeat::gbps);
      add("| {} | {} | {} % | {} | {} |\n", cell.streams, cell.threads, cell.matching_percent, text_of(gbps),
          results_.copies.pinned_gbps > 0 ? fmt::format("{:.2f}x", gbps.median / results_.copies.pinned_gbps) : "-");
    }
  }
  add("\n");
}

void Page::queues() {
  if (!has("queues")) {
    return;
  }
  add("## Queues\n\n"
      "One stream, which has two buffers more than queues. *Copy* and *kernel* are the shares of the time in which\n"
      "any buffer is copied, or worked on, by the device's clock. *Copy time hidden* is the share of the copy time in\n"
      "which a kernel runs too, *kernel time hidden* the share of the kernel time in which a copy runs: of the longer\n"
      "of the two not all can be hidden. On a CPU a copy that waits for a core counts as running.\n\n"
      "| queues | Gbps | copy | kernel | copy time hidden | kernel time hidden | one Hyperscan core, Gbps |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  BarChart speed{"Throughput by queues", "queues", "Gbps", {}, {{"libnca", {}}}, false};
  BarChart hidden{"Copy time hidden by queues", "queues", "percent", {}, {{"hidden", {}}}, false};
  for (NcaCell const& cell : results_.cells) {
    if (cell.part != "queues" || !is_measured(cell)) {
      continue;
    }
    const Spread gbps = over(cell, &NcaRepeat::gbps);
    add("| {} | {} | {:.1f} % | {:.1f} % | {} | {} | {} |\n", cell.queues, text_of(gbps),
        kPercent * over(cell, &NcaRepeat::copy).median, kPercent * over(cell, &NcaRepeat::kernel).median,
        share_text(cell, &NcaRepeat::hidden), share_text(cell, &NcaRepeat::kernel_hidden),
        text_of(spread_of(cell.hyperscan_gbps)));
    for (BarChart* chart : {&speed, &hidden}) {
      chart->labels.push_back(std::to_string(cell.queues));
    }
    speed.series[0].bars.push_back(bar_of(gbps));
    hidden.series[0].bars.push_back(bar_of(over(cell, &NcaRepeat::hidden), kPercent));
  }
  add("\n");
  figure("queues-gbps", speed);
  figure("queues-hidden", hidden);
  for (NcaCell const& cell : results_.cells) {
    if (!cell.timeline.empty() && is_measured(cell)) {
      TimeChart chart;
      chart.title = concat("One stream with ", cell.queues, " queues: buffers on the device");
      chart.x_title = "microseconds";
      chart.kinds = {"to device", "kernel", "to host"};
      chart.length = cell.timeline_us;
      chart.rows = cell.timeline;
      figure(concat("timeline-", cell.queues, ""), chart);
    }
  }
}

void Page::kernel() {
  if (!has("kernel")) {
    return;
  }
  add("## The kernel by itself\n\n"
      "Launched again and again over one buffer that is on the device, against the whole library.\n\n"
      "| strings | matching | the library, Gbps | the kernel, Gbps | ratio | one Hyperscan core, Gbps |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (NcaCell const& cell : results_.cells) {
    if (cell.part == "kernel" && is_measured(cell)) {
      add("| {} | {} % | {} | {} | {:.2f}x | {} |\n", cell.strings, cell.matching_percent,
          text_of(over(cell, &NcaRepeat::gbps)), text_of(over(cell, &NcaRepeat::plain_gbps)), ratio_of(cell),
          text_of(spread_of(cell.hyperscan_gbps)));
    }
  }
  add("\n");
}

PageText Page::make() {
  head();
  bars();
  draft();
  streams();
  queues();
  kernel();
  return take();
}

nlohmann::ordered_json json_of(NcaCell const& cell) {
  nlohmann::ordered_json json{{"part", cell.part},          {"strings", cell.strings},
                              {"packet_bytes", cell.bytes}, {"matching_percent", cell.matching_percent},
                              {"streams", cell.streams},    {"threads", cell.threads},
                              {"queues", cell.queues}};
  if (!cell.error.empty()) {
    json["error"] = cell.error;
  }
  json["gbps"] = to_json(over(cell, &NcaRepeat::gbps));
  json["mpps"] = to_json(over(cell, &NcaRepeat::mpps));
  json["hyperscan_core_gbps"] = to_json(spread_of(cell.hyperscan_gbps));
  if (cell.part == "draft") {
    json["batch_us"] = {
        {"copy_in", cell.batch.in_us}, {"kernel", cell.batch.kernel_us}, {"copy_back", cell.batch.back_us}};
  }
  if (cell.part == "queues") {
    json["copy_share"] = to_json(over(cell, &NcaRepeat::copy));
    json["kernel_share"] = to_json(over(cell, &NcaRepeat::kernel));
    json["hidden_share"] = to_json(over(cell, &NcaRepeat::hidden));
    json["kernel_hidden_share"] = to_json(over(cell, &NcaRepeat::kernel_hidden));
  } else if (cell.part == "kernel") {
    json["kernel_gbps"] = to_json(over(cell, &NcaRepeat::plain_gbps));
    json["ratio"] = ratio_of(cell);
  }
  json["repeats"] = nlohmann::ordered_json::array();
  for (NcaRepeat const& repeat : cell.repeats) {
    json["repeats"].push_back({{"gbps", repeat.gbps},
                               {"mpps", repeat.mpps},
                               {"kernel_gbps", repeat.plain_gbps},
                               {"hidden_share", repeat.hidden},
                               {"buffers", repeat.buffers},
                               {"packets", repeat.packets},
                               {"matches", repeat.matches}});
  }
  return json;
}

}  // namespace

PageText nca_page(NcaResults const& results) { return Page(results).make(); }

std::string to_json(NcaResults const& results) {
  nlohmann::ordered_json json{
      {"benchmark", "nca"},
      {"machine", results.machine},
      {"device", results.device},
      {"commit", results.commit},
      {"command", results.command},
      {"seconds", results.seconds},
      {"buffer_packets", results.buffer_packets},
      {"copies_gbps", {{"pinned", results.copies.pinned_gbps}, {"pageable", results.copies.pageable_gbps}}},
      {"failed_cells", results.failed_cells()},
      {"notes", results.notes}};
  json["cells"] = nlohmann::ordered_json::array();
  for (NcaCell const& cell : results.cells) {
    json["cells"].push_back(json_of(cell));
  }
  return json.dump(1);
}

std::pair<std::vector<TimeRow>, double> nca_timeline(std::span<const nca_times> buffers, std::int64_t middle_ns) {
  std::vector<nca_times> shown(buffers.begin(), buffers.end());
  std::sort(shown.begin(), shown.end(), [](auto const& a, auto const& b) { return a.begin_ns < b.begin_ns; });
  auto first = std::find_if(shown.begin(), shown.end(), [&](auto const& times) { return times.begin_ns >= middle_ns; });
  first -= std::min<std::ptrdiff_t>(first - shown.begin(), kTimelineBuffers / 2);
  shown.erase(shown.begin(), first);
  shown.resize(std::min(shown.size(), kTimelineBuffers));
  std::vector<TimeRow> rows;
  std::vector<std::int64_t> ends;  // of each row
  double length = 0;
  for (nca_times const& times : shown) {
    const auto at = [&](std::int64_t ns) { return static_cast<double>(ns - shown.front().begin_ns) / kNsPerUs; };
    std::size_t row = 0;
    while (row < ends.size() && ends[row] > times.begin_ns) {
      ++row;
    }
    if (row == ends.size()) {
      rows.push_back({concat("buffer ", row + 1), {}});
      ends.push_back(0);
    }
    ends[row] = times.moved_back_ns;
    rows[row].boxes.push_back({kToDevice, at(times.begin_ns), at(times.moved_in_ns)});
    rows[row].boxes.push_back({kKernel, at(times.moved_in_ns), at(times.computed_ns)});
    rows[row].boxes.push_back({kToHost, at(times.computed_ns), at(times.moved_back_ns)});
    length = std::max(length, at(times.moved_back_ns));
  }
  return {std::move(rows), length};
}

}  // namespace catena::bench
