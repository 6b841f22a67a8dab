// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/modes.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace catena::bench {
namespace {

/// Figure 1, from host memory to the device's; everything in percent of the time in host memory.
struct PaperStages {
  const char* file;
  const char* moves;
  const char* cpu;
  const char* saved;
};
constexpr std::array<PaperStages, 2> kPaperStages{{{"ipsec-parts", "25.8 -> 2.5 %", "49.2 -> 6.3 %", "77.1 %"},
                                                   {"nids-parts", "16.8 -> 4.9 %", "35.6 -> 7.1 %", "58.9 %"}}};
static_assert(kPaperStages.size() == std::size(kStagedNfs));

/// Of a batch, as the paper names them.
enum PartOfBatch : std::uint8_t { kPre, kHtoD, kGpu, kDtoH, kPost };
constexpr std::array<const char*, 5> kPartNames{"Pre", "HtoD", "GPU", "DtoH", "Post"};
using BatchParts = std::array<double, kPartNames.size()>;

BatchParts parts_of(LaunchTimes const& times) {
  PhaseTimes const& us = times.median_us;
  return {us[kFill] + us[kSubmit], us[kToDevice], us[kKernel], us[kToHost], us[kDeliver]};
}

/// A batch of one size in host memory and on the device, in microseconds.
struct Pair {
  std::uint32_t wire_bytes;
  Cell const* host;
  Cell const* device;
  BatchParts host_us;
  BatchParts device_us;

  /// What parts take, in percent of the whole batch in host memory.
  double percent(BatchParts const& us, std::initializer_list<PartOfBatch> parts) const {
    return percent_of(us, parts, sum_of(host_us));
  }
  double saved() const { return kPercent * (1 - sum_of(device_us) / sum_of(host_us)); }
};

class StagesSection final : private PaperSection {
 public:
  using PaperSection::PaperSection;

  PageText make();

 private:
  std::vector<Pair> pairs(StagedNf const& nf) const;
  void summary();
  void rows(StagedNf const& nf, Pair const& pair);
  void chart(StagedNf const& nf, PaperStages const& paper);
};

/// The medians over a cell's repeats; none where a repeat has no launch of the NF.
std::optional<BatchParts> parts_of(Cell const* cell, std::string_view nf) {
  if (cell == nullptr || std::any_of(cell->repeats.begin(), cell->repeats.end(),
                                     [nf](Repeat const& repeat) { return launches_of(repeat, nf) == nullptr; })) {
    return std::nullopt;
  }
  BatchParts parts{};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part] = over(*cell, [&](Repeat const& repeat) { return parts_of(*launches_of(repeat, nf))[part]; }).median;
  }
  return parts;
}

std::vector<Pair> StagesSection::pairs(StagedNf const& nf) const {
  std::vector<Pair> pairs;
  for (const std::uint32_t bytes : sizes()) {
    Cell const* host = find(results(), Part::kStages, nf.alone, kCopyStaged, bytes);
    Cell const* device = find(results(), Part::kStages, nf.resident, kAdaptiveStaged, bytes);
    const std::optional<BatchParts> host_us = parts_of(host, nf.nf);
    const std::optional<BatchParts> device_us = parts_of(device, nf.nf);
    if (host_us && device_us && sum_of(*host_us) > 0) {
      pairs.push_back({bytes, host, device, *host_us, *device_us});
    }
  }
  return pairs;
}

void StagesSection::summary() {
  add("| NF | HtoD + DtoH, paper | here | CPU, paper | here | all saved, paper | here |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (std::size_t i = 0; i < kPaperStages.size(); ++i) {
    const std::vector<Pair> found = pairs(kStagedNfs[i]);
    if (found.empty()) {
      continue;
    }
    const auto both = [&found](std::initializer_list<PartOfBatch> parts) {
      return fmt::format("{} -> {} %",
                         range_of(found, [parts](Pair const& pair) { return pair.percent(pair.host_us, parts); }),
                         range_of(found, [parts](Pair const& pair) { return pair.percent(pair.device_us, parts); }));
    };
    PaperStages const& paper = kPaperStages[i];
    add("| {} | {} | {} | {} | {} | {} | {} % |\n", kStagedNfs[i].alone, paper.moves, both({kHtoD, kDtoH}), paper.cpu,
        both({kPre, kPost}), paper.saved, range_of(found, [](Pair const& pair) { return pair.saved(); }));
  }
  add("\n");
}

void StagesSection::rows(StagedNf const& nf, Pair const& pair) {
  const auto row = [&](const char* where, Cell const& cell, BatchParts const& us) {
    add("| {} | {} | {} |", nf.alone, pair.wire_bytes, where);
    for (const PartOfBatch part : {kPre, kHtoD, kGpu, kDtoH, kPost}) {
      add(" {:.1f} % |", pair.percent(us, {part}));
    }
    const Traced traced = traced_of(cell, nf.nf);
    NfBytes const* bytes = bytes_of(cell.repeats.back(), nf.nf);
    add(" {:.1f} % | {:.1f} | {:.1f} | {:.1f} | {} | {:.0f} |\n", kPercent * sum_of(us) / sum_of(pair.host_us),
        sum_of(us), bytes != nullptr ? bytes->to_device : 0, bytes != nullptr ? bytes->to_host : 0, traced.launches,
        traced.packets_each);
  };
  row("host", *pair.host, pair.host_us);
  row("device", *pair.device, pair.device_us);
}

void StagesSection::chart(StagedNf const& nf, PaperStages const& paper) {
  BarChart chart;
  chart.title = concat(nf.alone, ": time of a batch");
  chart.x_title = "frame with FCS, bytes; H in host memory, D on the device";
  chart.y_title = "percent of the time in host memory";
  chart.stacked = true;
  for (const char* name : kPartNames) {
    chart.series.push_back({name, {}});
  }
  for (Pair const& pair : pairs(nf)) {
    for (const bool resident : {false, true}) {
      chart.labels.push_back(concat(pair.wire_bytes, resident ? " D" : " H"));
      for (const PartOfBatch part : {kPre, kHtoD, kGpu, kDtoH, kPost}) {
        chart.series[part].bars.push_back({pair.percent(resident ? pair.device_us : pair.host_us, {part}), 0, 0});
      }
    }
  }
  figure(paper.file, chart);
}

PageText StagesSection::make() {
  if (std::all_of(std::begin(kStagedNfs), std::end(kStagedNfs),
                  [this](StagedNf const& nf) { return pairs(nf).empty(); })) {
    return take();
  }
  add("## Time of a batch with its data in host memory and on the device, figure 1\n\n"
      "A unit of {} packets at a time is in the chain, so nothing runs beside it. *Host*: the NF alone, `{}`. "
      "*Device*:\n"
      "the same NF between two NIDS that leave packets alone, `{}`: the first brings whole packets, the second takes\n"
      "back what changed. The NF between them moves no packets, only what its launch and its results take: its bytes\n"
      "are in the table.\n"
      "From traces, medians over the launches: Pre is from the first packet taken until everything is enqueued, Post\n"
      "from the launch found done until its packets went on; HtoD, GPU and DtoH by the device's clock. The device "
      "begins\n"
      "while the host still enqueues, which counts for both. All in percent of the batch in host memory.\n\n",
      kBatchPackets, kCopyStaged, kAdaptiveStaged);
  summary();
  add("| NF | frame | data | Pre | HtoD | GPU | DtoH | Post | all | all, us | to device, B | to host, B | launches | "
      "packets each |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (StagedNf const& nf : kStagedNfs) {
    for (Pair const& pair : pairs(nf)) {
      rows(nf, pair);
    }
  }
  add("\n");
  for (std::size_t i = 0; i < kPaperStages.size(); ++i) {
    chart(kStagedNfs[i], kPaperStages[i]);
  }
  return take();
}

}  // namespace

PageText stages_section(Results const& results, Sizes const& sizes) { return StagesSection(results, sizes).make(); }

}  // namespace catena::bench
