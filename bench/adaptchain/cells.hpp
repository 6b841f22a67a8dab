// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/modes.hpp"
#include "bench/common/request.hpp"
#include "bench/common/results.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::bench {

/// Purpose of a cell.
enum class Group {
  kAnchor,      ///< C4 at two sizes at the head of each run, to compare runs on different machines
  kSource,      ///< rx and tx alone
  kThroughput,  ///< C1 to C5 at maximum speed
  kDecrypt,     ///< C1, C3 and C4 on ESP
  kPlaces,      ///< C4, S_d and FNR on the CPU, on the device and as the model places them
  kUnits,       ///< unit sizes
  kLatency,     ///< at an offered rate
  kStages,      ///< phases of a launch of one NF, packets in host memory or on the device, one launch at a time
  kBatch,       ///< phases of C3's launches at an offered rate
  kConflicts,   ///< transfer to the device of a firewall's packets while other NFs transfer theirs
};
/// Indexed by Group. Every run starts with "anchor"; users do not select it.
inline constexpr std::array<std::string_view, 10> kGroupNames{
    "anchor", "source", "throughput", "decrypt", "places", "units", "latency", "stages", "batch", "conflicts"};
/// True if the cells of the group trace their runs and run one copy of the chain.
bool is_traced(Group group);

/// One measurement.
struct Cell {
  Group group = Group::kThroughput;
  std::string chain;
  std::string mode;                ///< see kModes; "-" for a source
  std::uint32_t wire_bytes = 64;   ///< of an arriving frame with its FCS; for decrypting chains, of the inner frame
  std::uint32_t unit_packets = 0;  ///< 0: the default
  double offered_gbps = 0;         ///< 0: as fast as the chain accepts
  /// Copies of the chain. Part of the key for kSource and kPlaces, determined by the measurement for the other groups.
  /// In kPlaces, 0 until the fastest number is known.
  std::uint32_t replicas = 1;
  std::string tuning = "";  ///< if not the usual one; determined by the measurement

  Json key() const;
};

/// The number of copies of the chain with the best score_of(), searched for each measurement at full speed or of
/// latency.
inline constexpr const char* kBestReplicas = "best";
/// Candidate numbers of copies, up to the number of processors.
inline constexpr std::uint32_t kTriedReplicas[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
std::vector<std::uint32_t> tried_replicas();
/// Frames of the latency runs, with FCS. The paper does not state its frame size.
inline constexpr std::uint32_t kLatencyWireBytes = 1024;
inline constexpr double kLatencyGbps[] = {10, 100, 200};
inline constexpr std::uint32_t kUnitSizes[] = {4, 16, 64, 256, 1024};

/// Packets of a full launch in the traced groups, as in the paper.
inline constexpr std::uint32_t kBatchPackets = 1024;

/// Subject of a cell of Group::kStages: an NF of figure_chains() alone, and the chain that keeps its packets on the
/// device.
struct StagedNf {
  const char* alone;
  const char* resident;
};
inline constexpr StagedNf kStagedNfs[] = {{"IPsec", "IPsec-resident"}, {"NIDS", "NIDS-resident"}};

/// Variants of Group::kPlaces: one copy of the chain, or the fastest number of copies.
struct PlacedWay {
  const char* mode;
  bool is_best;
};
inline constexpr PlacedWay kPlacedWays[] = {
    {kCpu, true}, {kAdaptive, false}, {kAdaptive, true}, {kAuto, false}, {kAuto, true}};
inline constexpr const char* kPlacedChains[] = {"C4", "S_d", "FNR"};

/// Chains of Group::kConflicts.
inline constexpr const char* kConflictChains[] = {"F", "F-I", "F-I-N"};

/// Cells that each run measures again.
std::vector<Cell> anchor_cells(Request const& request);
/// All other requested cells.
std::vector<Cell> list_cells(Request const& request);
/// `tuning:` of the cell's chain file; `usual` is the tuning of most cells.
std::string tuning_of(Cell const& cell, std::string const& usual);

}  // namespace catena::bench
