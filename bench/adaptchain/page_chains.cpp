// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

#include "bench/adaptchain/modes.hpp"
#include "bench/chains/reference.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

namespace catena::bench {
namespace {

class ChainSection final : private PaperSection {
 public:
  ChainSection(Results const& results, Sizes const& sizes, Part part, PaperChain const& chain)
      : PaperSection(results, sizes), part_(part), chain_(chain) {}

  PageText make(std::string_view figure_name);

 private:
  std::string ceiling(Cell const& cell) const;
  void bars(std::string const& file, std::string const& what, std::function<Spread(Cell const&)> const& value,
            bool normalized);
  void figures();
  void table();
  void nf_bytes();

  Part part_;
  PaperChain const& chain_;
};

/// What the source gives at most, in Gbps, with as many copies and threads; "-" where it was not measured.
std::string ChainSection::ceiling(Cell const& cell) const {
  const char* chain = empty_chain(cell.part == Part::kDecrypt).name;
  for (Cell const& source : results().cells) {
    if (source.part == Part::kSource && source.chain == chain && source.wire_bytes == cell.wire_bytes &&
        source.replicas == cell.replicas) {
      return fmt::format("{:.0f}", gbps(source).median);
    }
  }
  return "-";
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

void ChainSection::bars(std::string const& file, std::string const& what,
                        std::function<Spread(Cell const&)> const& value, bool normalized) {
  BarChart chart;
  chart.title = concat(chain_.name, ": ", what);
  chart.x_title = "frame with FCS, bytes";
  chart.y_title = what;
  chart.labels = labels_of(sizes());
  for (SyncMode const& mode : kModes) {
    BarSeries series{mode.name, {}};
    for (const std::uint32_t bytes : sizes()) {
      Cell const* cell = find(results(), part_, chain_.name, mode.name, bytes);
      Cell const* base = find(results(), part_, chain_.name, kCopyStaged, bytes);
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

void ChainSection::figures() {
  std::string file(chain_.name);
  std::transform(file.begin(), file.end(), file.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  bars(file + "-throughput", "throughput, Gbps", gbps, false);
  bars(file + "-to-device", "bytes to the device; copy, staged = 1", bytes_to_device, true);
  if (std::string_view(chain_.name) == "C3") {
    bars(file + "-to-host", "bytes to the host; copy, staged = 1", bytes_to_host, true);
  }
}

void ChainSection::table() {
  add("| frame | mode | copies | Mpps | Gbps | source, Gbps | busiest stage | planned ns | measured ns | to device, B "
      "| to host, B | p50 us | p95 us | p99 us | dropped |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::uint32_t bytes : sizes()) {
    for (SyncMode const& mode : kModes) {
      Cell const* cell = find(results(), part_, chain_.name, mode.name, bytes);
      if (cell == nullptr) {
        continue;
      }
      const Spread speed = gbps(*cell);
      std::uint64_t dropped = 0;
      for (Repeat const& repeat : cell->repeats) {
        dropped += repeat.dropped;
      }
      add("| {} | {} | {} | {:.3f} | {:.2f} ({:.2f} .. {:.2f}) | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | "
          "{:.0f} | {:.0f} | {:.0f} | {} |\n",
          bytes, mode.name, cell->replicas, packets_per_s(*cell).median / kMega, speed.median, speed.low, speed.high,
          ceiling(*cell), busiest_stage(*cell, results().seconds), cell->planned_ns,
          kNsPerSecond / std::max(1.0, packets_per_s(*cell).median), bytes_to_device(*cell).median,
          bytes_to_host(*cell).median, over(*cell, &Repeat::p50_us).median, over(*cell, &Repeat::p95_us).median,
          over(*cell, &Repeat::p99_us).median, dropped);
    }
  }
  add("\nLatencies are those of a full pool: the source does not wait. Copies of the chain have threads of their own "
      "for\nevery NF; their number is the one of 1 to 3 that was fastest. *Source*: what as many copies of rx and tx "
      "alone do.\n"
      "*Planned*: what the plan reckons a packet costs the bus, the CPU and the device, added up.\n\n");
}

/// What the launches of each NF on the device move there.
void ChainSection::nf_bytes() {
  std::vector<const char*> nfs;
  for (PaperNf const& nf : chain_.nfs) {
    if (nf.on_gpu) {
      nfs.push_back(nf.name);
    }
  }
  add("To the device by NF, bytes a packet of its launches:\n\n| frame | mode |");
  for (const char* nf : nfs) {
    add(" {} |", nf);
  }
  add("\n| --- | --- |");
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    add(" --- |");
  }
  add("\n");
  for (const std::uint32_t bytes : sizes()) {
    for (SyncMode const& mode : kModes) {
      Cell const* cell = find(results(), part_, chain_.name, mode.name, bytes);
      if (cell == nullptr) {
        continue;
      }
      add("| {} | {} |", bytes, mode.name);
      for (const char* nf : nfs) {
        add(" {:.1f} |", nf_bytes_to_device(*cell, nf).median);
      }
      add("\n");
    }
  }
  add("\n");
}

PageText ChainSection::make(std::string_view figure_name) {
  const auto measured = std::find_if(results().cells.begin(), results().cells.end(), [this](Cell const& cell) {
    return cell.part == part_ && cell.chain == chain_.name && !cell.repeats.empty();
  });
  if (measured == results().cells.end()) {
    return take();
  }
  add("## {}: {}{}\n\n", chain_.name, chain_.title(), figure_name.empty() ? "" : concat(", figure ", figure_name));
  add("Run {}. ", measured->run + 1);
  if (chain_.esp_input) {
    add("Not in the paper's figures: real ESP comes in, and is decrypted. Sizes are those of the frames inside. Every\n"
        "{}th flow is a connection to the load balancer's service, every {}th packet holds a string of the NIDS's "
        "rules.\n\n",
        kServiceEvery, kMatchEvery);
  }
  figures();
  table();
  nf_bytes();
  return take();
}

}  // namespace

PageText chain_section(Results const& results, Sizes const& sizes, Part part, PaperChain const& chain,
                       std::string_view figure) {
  return ChainSection(results, sizes, part, chain).make(figure);
}

}  // namespace catena::bench
