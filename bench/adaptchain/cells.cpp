// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/cells.hpp"

#include "bench/chains/chains.hpp"
#include "bench/common/machine.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::uint32_t kBlockPackets = 4096;
constexpr std::uint32_t kMaxUnitsPerLaunch = 1024;

std::string_view name_of(Group group) { return kGroupNames[static_cast<std::size_t>(group)]; }

class CellList {
 public:
  explicit CellList(Request const& request) : request_(request), sizes_(request.counts("sizes")) {}
  std::vector<Cell> make();

 private:
  bool wants(Group group) const { return request_.wants("groups", name_of(group)); }
  bool wants(std::string_view chain) const { return request_.wants("chains", chain); }
  void add(Group group, std::string chain, std::string mode, std::uint32_t wire_bytes, std::uint32_t unit_packets = 0,
           double offered_gbps = 0) {
    cells_.push_back({group, std::move(chain), std::move(mode), wire_bytes, unit_packets, offered_gbps});
  }
  void sources();
  void chains();
  void places();
  void units();
  void latency();
  void stages();
  void batch();
  void conflicts();

  Request const& request_;
  std::vector<std::uint32_t> sizes_;
  std::vector<Cell> cells_;
};

void CellList::sources() {
  const std::vector<std::uint32_t> replicas =
      request_.text("replicas") == kBestReplicas ? tried_replicas() : std::vector{request_.count("replicas")};
  for (const bool esp : {false, true}) {
    for (const std::uint32_t size : wants(Group::kSource) ? sizes_ : std::vector<std::uint32_t>()) {
      for (const std::uint32_t n : replicas) {
        add(Group::kSource, empty_chain(esp).name, "-", size);
        cells_.back().replicas = n;
      }
    }
  }
}

void CellList::chains() {
  for (PaperChain const& chain : paper_chains()) {
    const Group group = chain.esp_input ? Group::kDecrypt : Group::kThroughput;
    if (!wants(group) || !wants(chain.name)) {
      continue;
    }
    for (const std::uint32_t size : sizes_) {
      for (SyncMode const& mode : kModes) {
        // what NFs cost is measured over packets that are not encrypted
        const bool is_known = !chain.esp_input || mode.placed != Placed::kAuto;
        if (is_known && request_.wants("modes", mode.name)) {
          add(group, chain.name, mode.name, size);
        }
      }
    }
  }
}

void CellList::places() {
  for (const char* chain : kPlacedChains) {
    for (const std::uint32_t size : wants(Group::kPlaces) && wants(chain) ? sizes_ : std::vector<std::uint32_t>()) {
      for (PlacedWay const& way : kPlacedWays) {
        add(Group::kPlaces, chain, way.mode, size);
        cells_.back().replicas = way.is_best ? 0 : 1;
      }
    }
  }
}

void CellList::units() {
  if (!wants(Group::kUnits) || !wants("C4")) {
    return;
  }
  for (const std::uint32_t units : kUnitSizes) {
    for (const std::uint32_t size : sizes_) {
      add(Group::kUnits, "C4", kAdaptive, size, units);
    }
    add(Group::kLatency, "C4", kAdaptive, kLatencyWireBytes, units, kLatencyGbps[0]);
  }
}

void CellList::latency() {
  for (const char* chain : {"C1", "C4"}) {
    for (const double rate : kLatencyGbps) {
      for (const char* mode : {kCopyStaged, kAdaptive, kCpu}) {
        if (wants(Group::kLatency) && wants(chain)) {
          add(Group::kLatency, chain, mode, kLatencyWireBytes, 0, rate);
        }
      }
    }
  }
}

void CellList::stages() {
  for (StagedNf const& staged : kStagedNfs) {
    for (const std::uint32_t size : wants(Group::kStages) ? sizes_ : std::vector<std::uint32_t>()) {
      if (wants(staged.alone)) {
        add(Group::kStages, staged.alone, kCopyStaged, size);
      }
      if (wants(staged.resident)) {
        add(Group::kStages, staged.resident, kAdaptiveStaged, size);
      }
    }
  }
}

void CellList::batch() {
  if (!wants(Group::kBatch) || !wants("C3")) {
    return;
  }
  for (const std::uint32_t size : sizes_) {
    for (const char* mode : {kCopyStaged, kAdaptive}) {
      add(Group::kBatch, "C3", mode, size, 0, kLatencyGbps[0]);
    }
  }
}

void CellList::conflicts() {
  for (const double rate : kLatencyGbps) {
    for (const char* chain : kConflictChains) {
      if (wants(Group::kConflicts) && wants(chain)) {
        add(Group::kConflicts, chain, kCopyStaged, kLatencyWireBytes, 0, rate);
      }
    }
  }
}

std::vector<Cell> CellList::make() {
  sources();
  chains();
  places();
  units();
  latency();
  stages();
  batch();
  conflicts();
  return std::move(cells_);
}

}  // namespace

std::vector<std::uint32_t> tried_replicas() {
  std::vector<std::uint32_t> replicas;
  std::ranges::copy_if(kTriedReplicas, std::back_inserter(replicas),
                       [](std::uint32_t n) { return n <= usable_cores(); });
  return replicas;
}

bool is_traced(Group group) { return group == Group::kStages || group == Group::kBatch || group == Group::kConflicts; }

Json Cell::key() const {
  Json key{{"group", name_of(group)},
           {"chain", chain},
           {"mode", mode},
           {"wire_bytes", wire_bytes},
           {"unit_packets", unit_packets},
           {"offered_gbps", offered_gbps}};
  if (group == Group::kSource) {
    key["replicas"] = replicas;
  }
  if (group == Group::kPlaces) {
    key["copies"] = replicas == 0 ? kBestReplicas : std::to_string(replicas);
  }
  return key;
}

std::vector<Cell> anchor_cells(Request const& request) {
  const std::vector<std::uint32_t> sizes = request.counts("sizes");
  return {{Group::kAnchor, "C4", kAdaptive, sizes.front()}, {Group::kAnchor, "C4", kAdaptive, sizes.back()}};
}

std::vector<Cell> list_cells(Request const& request) { return CellList(request).make(); }

std::string tuning_of(Cell const& cell, std::string const& usual) {
  if (cell.unit_packets != 0) {
    // the block that moves stays what it is, as in the paper: 4,096 packets, or as many units as a launch takes
    return concat("pool_slots: 65536, unit_packets: ", cell.unit_packets,
                  ", units_per_launch: ", std::min(kBlockPackets / cell.unit_packets, kMaxUnitsPerLaunch));
  }
  if (!is_traced(cell.group)) {
    return cell.tuning.empty() ? usual : cell.tuning;
  }
  // a batch is one unit: no launch has fewer packets, and none waits for another unit
  return concat("unit_packets: ", kBatchPackets, ", units_per_launch: 1, ",
                cell.group == Group::kStages ? "pool_slots: 2048, launches_in_flight: 1" : "pool_slots: 65536");
}

}  // namespace catena::bench
