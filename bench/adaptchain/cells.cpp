// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/cells.hpp"

#include "bench/adaptchain/modes.hpp"
#include "bench/chains/chains.hpp"
#include "bench/common/wanted.hpp"
#include "chain/chain_file.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::uint32_t kBlockPackets = 4096;
constexpr std::uint32_t kMaxUnitsPerLaunch = 1024;

class CellList {
 public:
  CellList(PaperOptions const& options, Results& results) : options_(options), results_(results) {}
  void make();

 private:
  bool wants(Part part) const { return is_wanted(options_.parts, to_string(part)); }
  bool wants(std::string_view chain) const { return is_wanted(options_.chains, chain); }
  void add(Part part, std::string chain, std::string mode, std::uint32_t wire_bytes, std::uint32_t unit_packets = 0,
           double offered_gbps = 0);
  void anchors_and_sources();
  void chains();
  void units();
  void latency();
  void stages();
  void batch();
  void conflicts();

  PaperOptions const& options_;
  Results& results_;
};

void CellList::add(Part part, std::string chain, std::string mode, std::uint32_t wire_bytes, std::uint32_t unit_packets,
                   double offered_gbps) {
  Cell cell;
  cell.part = part;
  cell.chain = std::move(chain);
  cell.mode = std::move(mode);
  cell.wire_bytes = wire_bytes;
  cell.unit_packets = unit_packets;
  cell.offered_gbps = offered_gbps;
  results_.cells.push_back(std::move(cell));
}

void CellList::anchors_and_sources() {
  std::vector<std::uint32_t> const& sizes = options_.wire_bytes;
  for (const std::uint32_t size : {sizes.front(), sizes.back()}) {
    add(Part::kAnchor, "C4", kAdaptive, size);
  }
  const bool tries = options_.replicas == kBestReplicas;
  for (const bool esp : {false, true}) {
    for (const std::uint32_t size : wants(Part::kSource) ? sizes : std::vector<std::uint32_t>()) {
      for (std::uint32_t n = tries ? 1 : options_.replicas; n <= (tries ? kMaxTriedReplicas : options_.replicas); ++n) {
        add(Part::kSource, empty_chain(esp).name, "-", size);
        results_.cells.back().replicas = n;
      }
    }
  }
}

void CellList::chains() {
  for (PaperChain const& chain : paper_chains()) {
    const Part part = chain.esp_input ? Part::kDecrypt : Part::kThroughput;
    if (!wants(part) || !wants(chain.name)) {
      continue;
    }
    for (const std::uint32_t size : options_.wire_bytes) {
      for (SyncMode const& mode : kModes) {
        if (is_wanted(options_.modes, mode.name)) {
          add(part, chain.name, mode.name, size);
        }
      }
    }
  }
}

void CellList::units() {
  if (!wants(Part::kUnits) || !wants("C4")) {
    return;
  }
  // the key may be one that this build does not have
  ChainText text;
  text.tuning = "unit_packets: 256";
  if (const auto known = chain::parse_chain(chain_text(empty_chain(), text), "units.yaml"); !known.ok()) {
    results_.notes.push_back(concat("The sweep over unit sizes is left out: ", std::string(known.status().message())));
    return;
  }
  for (const std::uint32_t units : kUnitSizes) {
    for (const std::uint32_t size : options_.wire_bytes) {
      add(Part::kUnits, "C4", kAdaptive, size, units);
    }
    add(Part::kLatency, "C4", kAdaptive, kLatencyWireBytes, units, kLatencyGbps[0]);
  }
}

void CellList::latency() {
  for (const char* chain : {"C1", "C4"}) {
    for (const double rate : kLatencyGbps) {
      for (const char* mode : {kCopyStaged, kAdaptive}) {
        if (wants(Part::kLatency) && wants(chain)) {
          add(Part::kLatency, chain, mode, kLatencyWireBytes, 0, rate);
        }
      }
    }
  }
}

void CellList::stages() {
  for (StagedNf const& staged : kStagedNfs) {
    for (const std::uint32_t size : wants(Part::kStages) ? options_.wire_bytes : std::vector<std::uint32_t>()) {
      if (wants(staged.alone)) {
        add(Part::kStages, staged.alone, kCopyStaged, size);
      }
      if (wants(staged.resident)) {
        add(Part::kStages, staged.resident, kAdaptiveStaged, size);
      }
    }
  }
}

void CellList::batch() {
  if (!wants(Part::kBatch) || !wants("C3")) {
    return;
  }
  for (const std::uint32_t size : options_.wire_bytes) {
    for (const char* mode : {kCopyStaged, kAdaptive}) {
      add(Part::kBatch, "C3", mode, size, 0, kLatencyGbps[0]);
    }
  }
}

void CellList::conflicts() {
  for (const double rate : kLatencyGbps) {
    for (const char* chain : kConflictChains) {
      if (wants(Part::kConflicts) && wants(chain)) {
        add(Part::kConflicts, chain, kCopyStaged, kLatencyWireBytes, 0, rate);
      }
    }
  }
}

void CellList::make() {
  anchors_and_sources();
  chains();
  units();
  latency();
  stages();
  batch();
  conflicts();
}

}  // namespace

void list_cells(PaperOptions const& options, Results& results) { CellList(options, results).make(); }

std::string tuning_of(Cell const& cell, std::string const& usual) {
  if (cell.unit_packets != 0) {
    // the block that moves stays what it is, as in the paper: 4,096 packets, or as many units as a launch takes
    return concat("pool_slots: 65536, unit_packets: ", cell.unit_packets,
                  ", units_per_launch: ", std::min(kBlockPackets / cell.unit_packets, kMaxUnitsPerLaunch));
  }
  if (!is_traced(cell.part)) {
    return usual;
  }
  // a batch is one unit: no launch has fewer packets, and none waits for another unit
  return concat("unit_packets: ", kBatchPackets, ", units_per_launch: 1, ",
                cell.part == Part::kStages ? "pool_slots: 2048, launches_in_flight: 1" : "pool_slots: 65536");
}

}  // namespace catena::bench
