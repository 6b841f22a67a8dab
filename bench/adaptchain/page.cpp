// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page.hpp"

#include "bench/adaptchain/modes.hpp"
#include "bench/adaptchain/page_sections.hpp"
#include "bench/chains/chains.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace catena::bench {
namespace {

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

/// Host to device bytes of one NF that adaptive synchronization saves.
struct PaperNfBytes {
  const char* chain;
  const char* nf;
  const char* saved;
};
constexpr std::array<PaperNfBytes, 2> kPaperNfBytes{{{"C1", "ids", "63.6 .. 99.5 %"}, {"C2", "vpn", "72.0 .. 99.1 %"}}};

using Value = std::function<Spread(Cell const&)>;

class Page final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  /// The range over the sizes of one mode's value divided by another's; "-" where there is nothing.
  std::string ratios(Part part, std::string_view chain, std::string_view mode, std::string_view other,
                     Value const& value, bool saved) const;

  void anchors();
  void head();
  std::string ratio(Part part, std::string_view chain, std::uint32_t bytes, const char* mode, const char* base) const;
  void comparisons();
  void summary();
  void nf_bytes();
  void source();
};

std::string Page::ratios(Part part, std::string_view chain, std::string_view mode, std::string_view other,
                         Value const& value, bool saved) const {
  std::vector<double> found;
  for (const std::uint32_t bytes : sizes()) {
    Cell const* ours = find(results(), part, chain, mode, bytes);
    Cell const* theirs = find(results(), part, chain, other, bytes);
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
      results().runs.size());
  for (std::size_t run = 0; run < results().runs.size(); ++run) {
    RunOrigin const& origin = results().runs[run];
    std::string speeds;
    for (Cell const& cell : results().cells) {
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
      results().costs_from, results().commit, results().seconds, results().tuning, results().samples_compared(),
      results().samples_different());
  anchors();
  add("Sizes are those of arriving frames with FCS (Catena's own figures are without its 4 bytes), and Gbps counts\n"
      "them so. Modes: `copy` stands for G-NET, the paper's baseline; `shared` for Gaviss; `adaptive` for AdaptChain.\n"
      "`staged`: everything is batched by the CPU, as in the papers; else plans may use every transfer method.\nIPsec "
      "encrypts in every chain unless it says decrypt, so NFs behind it meet ESP: the NIDS searches ciphertext,\n"
      "and C3's load balancer finds no connection.\n\n");
  for (std::string const& note : results().notes) {
    add("{}\n\n", note);
  }
  if (results().failed_cells() > 0) {
    add("**{} measurements failed:**\n\n", results().failed_cells());
    for (Cell const& cell : results().cells) {
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
  Cell const* ours = find(results(), part, chain, mode, bytes);
  Cell const* theirs = find(results(), part, chain, base, bytes);
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
    for (const std::uint32_t bytes : has(part, entry.name) ? sizes() : Sizes()) {
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

/// What single NFs move, everything staged as in the paper.
void Page::nf_bytes() {
  if (!has(Part::kThroughput)) {
    return;
  }
  add("Bytes that single NFs move to the device, saved the same way. Less than 0: the NF brings what those behind it "
      "need.\n\n"
      "| chain | NF | paper | here |\n| --- | --- | --- | --- |\n");
  for (PaperChain const& chain : paper_chains()) {
    for (PaperNf const& nf : chain.nfs) {
      if (chain.esp_input || !nf.on_gpu || !has(Part::kThroughput, chain.name)) {
        continue;
      }
      const auto* const paper = std::find_if(kPaperNfBytes.begin(), kPaperNfBytes.end(), [&](PaperNfBytes const& one) {
        return std::string_view(one.chain) == chain.name && std::string_view(one.nf) == nf.name;
      });
      const auto to_device = [&nf](Cell const& cell) { return nf_bytes_to_device(cell, nf.name); };
      add("| {} | {} | {} | {} |\n", chain.name, nf.type, paper != kPaperNfBytes.end() ? paper->saved : "",
          ratios(Part::kThroughput, chain.name, kAdaptiveStaged, kCopyStaged, to_device, true));
    }
  }
  add("\n");
}

void Page::source() {
  if (!has(Part::kSource)) {
    return;
  }
  add("## What the source gives\n\nrx and tx without NFs. As many copies of a chain cannot be faster.\n\n"
      "| source | frame | copies | Mpps | Gbps |\n| --- | --- | --- | --- | --- |\n");
  for (Cell const& cell : results().cells) {
    if (cell.part == Part::kSource && !cell.repeats.empty()) {
      const Spread speed = gbps(cell);
      add("| {} | {} | {} | {:.3f} | {:.2f} ({:.2f} .. {:.2f}) |\n",
          cell.chain == empty_chain(true).name ? "ESP, whole frames" : "replay", cell.wire_bytes, cell.replicas,
          packets_per_s(cell).median / kMega, speed.median, speed.low, speed.high);
    }
  }
  add("\n");
}

PageText Page::make() {
  head();
  comparisons();
  summary();
  nf_bytes();
  source();
  for (PaperFigures const& paper : kPaper) {
    append(chain_section(results(), sizes(), Part::kThroughput, **find_chain(paper.chain), paper.figures));
  }
  append(busy_section(results(), sizes()));
  for (PaperChain const& entry : paper_chains()) {
    if (entry.esp_input) {
      append(chain_section(results(), sizes(), Part::kDecrypt, entry, ""));
    }
  }
  append(units_section(results(), sizes()));
  append(latency_section(results(), sizes()));
  append(stages_section(results(), sizes()));
  append(batch_section(results(), sizes()));
  append(conflicts_section(results(), sizes()));
  return take();
}

}  // namespace

PageText paper_page(Results const& results, std::vector<std::uint32_t> const& wire_bytes) {
  return Page(results, wire_bytes).make();
}

}  // namespace catena::bench
