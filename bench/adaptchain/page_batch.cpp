// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/modes.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

namespace catena::bench {
namespace {

/// What C3 spends time on, in the order of a bar.
enum Piece : std::uint8_t { kRx, kMovesIn, kVpnCpu, kVpnKernel, kLb, kIdsCpu, kIdsKernel, kMovesBack, kTx };
constexpr std::array<const char*, 9> kPieces{"rx",      "to device",  "vpn CPU", "vpn kernel", "lb",
                                             "ids CPU", "ids kernel", "to host", "tx"};
using Pieces = std::array<double, kPieces.size()>;  ///< microseconds of a batch
constexpr const char* kChain = "C3";

double busy_us(Repeat const& repeat, std::string_view stage) {
  const auto found = std::find_if(repeat.stage_seconds.begin(), repeat.stage_seconds.end(),
                                  [stage](auto const& one) { return one.first == stage; });
  constexpr double kUsPerSecond = 1e6;
  return found == repeat.stage_seconds.end() ? 0
                                             : found->second * kUsPerSecond * kBatchPackets /
                                                   static_cast<double>(std::max<std::uint64_t>(repeat.received, 1));
}

/// Precondition: both NFs have launches.
Pieces pieces_of(Repeat const& repeat) {
  LaunchTimes const& vpn = *launches_of(repeat, "vpn");
  LaunchTimes const& ids = *launches_of(repeat, "ids");
  const auto us = [](LaunchTimes const& times, Phase phase) {
    return times.total_us[phase] * kBatchPackets / static_cast<double>(times.packets);
  };
  return {busy_us(repeat, "rx"),  us(vpn, kToDevice) + us(ids, kToDevice),
          busy_us(repeat, "vpn"), us(vpn, kKernel),
          busy_us(repeat, "lb"),  busy_us(repeat, "ids"),
          us(ids, kKernel),       us(vpn, kToHost) + us(ids, kToHost),
          busy_us(repeat, "tx")};
}

/// The medians over a cell's repeats; none where a repeat has no launches of an NF.
std::optional<Pieces> pieces_of(Cell const* cell) {
  if (cell == nullptr || std::any_of(cell->repeats.begin(), cell->repeats.end(), [](Repeat const& repeat) {
        return launches_of(repeat, "vpn") == nullptr || launches_of(repeat, "ids") == nullptr;
      })) {
    return std::nullopt;
  }
  Pieces pieces{};
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    pieces[piece] = over(*cell, [piece](Repeat const& repeat) { return pieces_of(repeat)[piece]; }).median;
  }
  return pieces;
}

/// One size in both modes.
struct Pair {
  std::uint32_t wire_bytes;
  Cell const* copy;
  Cell const* adaptive;
  Pieces copy_us;
  Pieces adaptive_us;

  double percent(Pieces const& us, std::initializer_list<Piece> pieces) const {
    return percent_of(us, pieces, sum_of(copy_us));
  }
};

class BatchSection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  std::vector<Pair> pairs() const;
  void summary(std::vector<Pair> const& found);
  void row(Pair const& pair, Cell const& cell, Pieces const& us);
  void chart(std::vector<Pair> const& found);
};

std::vector<Pair> BatchSection::pairs() const {
  std::vector<Pair> pairs;
  for (const std::uint32_t bytes : sizes()) {
    const auto cell = [&](const char* mode) {
      return find(results(), Part::kBatch, kChain, mode, bytes, 0, kLatencyGbps[0]);
    };
    const std::optional<Pieces> copy_us = pieces_of(cell(kCopyStaged));
    const std::optional<Pieces> adaptive_us = pieces_of(cell(kAdaptive));
    if (copy_us && adaptive_us && sum_of(*copy_us) > 0) {
      pairs.push_back({bytes, cell(kCopyStaged), cell(kAdaptive), *copy_us, *adaptive_us});
    }
  }
  return pairs;
}

void BatchSection::summary(std::vector<Pair> const& found) {
  const auto range = [&found](std::initializer_list<Piece> pieces) {
    return range_of(found, [pieces](Pair const& pair) { return pair.percent(pair.adaptive_us, pieces); });
  };
  add("| `{}`, in percent of `{}` | paper | here |\n| --- | --- | --- |\n"
      "| to the device (H2D unit) | 5.9 .. 8.9 % | {} % |\n"
      "| NFs | 38.7 .. 67.3 % | {} % |\n"
      "| to the host and tx (D2H unit and TX) | 26.5 .. 52.3 % | {} % |\n"
      "| all saved | 13.6 .. 63.7 % | {} % |\n\n",
      kAdaptive, kCopyStaged, range({kMovesIn}), range({kVpnCpu, kVpnKernel, kLb, kIdsCpu, kIdsKernel}),
      range({kMovesBack, kTx}), range_of(found, [](Pair const& pair) {
        return kPercent * (1 - sum_of(pair.adaptive_us) / sum_of(pair.copy_us));
      }));
}

void BatchSection::row(Pair const& pair, Cell const& cell, Pieces const& us) {
  add("| {} | {} | {} |", pair.wire_bytes, cell.mode, left_of(cell));
  for (std::size_t piece = 0; piece < kPieces.size(); ++piece) {
    add(" {:.1f} % |", pair.percent(us, {static_cast<Piece>(piece)}));
  }
  const Traced vpn = traced_of(cell, "vpn");
  const Traced ids = traced_of(cell, "ids");
  add(" {:.1f} % | {:.1f} | {} of {:.0f}, {} of {:.0f} |\n", kPercent * sum_of(us) / sum_of(pair.copy_us), sum_of(us),
      vpn.launches, vpn.packets_each, ids.launches, ids.packets_each);
}

void BatchSection::chart(std::vector<Pair> const& found) {
  BarChart chart;
  chart.title = concat(kChain, ", ", kLatencyGbps[0], " Gbps offered: time of ", kBatchPackets, " packets");
  chart.x_title = "frame with FCS, bytes; B copy, staged, A adaptive";
  chart.y_title = "percent of copy, staged";
  chart.stacked = true;
  for (const char* name : kPieces) {
    chart.series.push_back({name, {}});
  }
  for (Pair const& pair : found) {
    for (const bool adaptive : {false, true}) {
      chart.labels.push_back(concat(pair.wire_bytes, adaptive ? " A" : " B"));
      for (std::size_t piece = 0; piece < kPieces.size(); ++piece) {
        chart.series[piece].bars.push_back(
            {pair.percent(adaptive ? pair.adaptive_us : pair.copy_us, {static_cast<Piece>(piece)}), 0, 0});
      }
    }
  }
  figure("c3-batch", chart);
}

PageText BatchSection::make() {
  const std::vector<Pair> found = pairs();
  if (found.empty()) {
    return take();
  }
  add("## Time of a batch of C3, figure 11(b)\n\n"
      "{} Gbps offered, in units and launches of {} packets: what stages take for one; `{}` as a whole is 100 %.\n"
      "rx, lb, tx and *CPU* are the time that the stage was busy in the run, *CPU* with what it gathers, enqueues and\n"
      "puts back; the rest is of the launches in the trace, over their packets. The paper's H2D and D2H units also\n"
      "gather and put back; there those are in *CPU*. Moves may wait for one another, and all of it goes on side by "
      "side.\n\n",
      kLatencyGbps[0], kBatchPackets, kCopyStaged);
  summary(found);
  add("| frame | mode | left, Gbps |");
  for (const char* name : kPieces) {
    add(" {} |", name);
  }
  add(" all | all, us | launches, vpn and ids |\n| --- | --- | --- |");
  for (std::size_t i = 0; i < kPieces.size() + 3; ++i) {
    add(" --- |");
  }
  add("\n");
  for (Pair const& pair : found) {
    row(pair, *pair.copy, pair.copy_us);
    row(pair, *pair.adaptive, pair.adaptive_us);
  }
  add("\n");
  chart(found);
  return take();
}

}  // namespace

PageText batch_section(Results const& results, Sizes const& sizes) { return BatchSection(results, sizes).make(); }

}  // namespace catena::bench
