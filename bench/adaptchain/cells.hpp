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

/// What a cell is measured for.
enum class Group {
  kAnchor,      ///< C4 at two sizes at the head of each run: by them runs on several machines can be compared
  kSource,      ///< rx and tx alone
  kThroughput,  ///< C1 to C5 as fast as they can
  kDecrypt,     ///< C1, C3 and C4 on ESP
  kPlaces,      ///< C4, S_d and FNR on the CPU, on the device and where the model says
  kUnits,       ///< unit sizes
  kLatency,     ///< at an offered rate
  kStages,      ///< parts of a launch of one NF, its packets in host memory or on the device, one launch at a time
  kBatch,       ///< parts of C3's launches at an offered rate
  kConflicts,   ///< what a firewall's packets take to the device while other NFs move theirs
};
/// By their names; what every run begins with comes first, and nobody asks for it.
inline constexpr std::array<std::string_view, 10> kGroupNames{
    "anchor", "source", "throughput", "decrypt", "places", "units", "latency", "stages", "batch", "conflicts"};
/// Of cells whose runs are traced, and of one copy of the chain.
bool is_traced(Group group);

/// One measurement.
struct Cell {
  Group group = Group::kThroughput;
  std::string chain;
  std::string mode;                ///< see kModes; "-" for a source
  std::uint32_t wire_bytes = 64;   ///< of an arriving frame with its FCS; where the chain decrypts, of what is inside
  std::uint32_t unit_packets = 0;  ///< 0: the default
  double offered_gbps = 0;         ///< 0: as fast as the chain takes
  /// Part of the key of a source, and where the group is kPlaces: 0 there until the fastest number is found. Else found
  /// while measuring, too.
  std::uint32_t replicas = 1;
  std::string tuning = "";  ///< where it is not that of all cells: found while measuring

  Json key() const;
};

/// As many copies of the chain as are fastest: for each measurement of throughput tried by itself.
inline constexpr const char* kBestReplicas = "best";
/// Those that are tried, up to the number of processors.
inline constexpr std::uint32_t kTriedReplicas[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
std::vector<std::uint32_t> tried_replicas();
/// Frames of the latency runs, with FCS; the paper does not say which it took.
inline constexpr std::uint32_t kLatencyWireBytes = 1024;
inline constexpr double kLatencyGbps[] = {10, 100, 200};
inline constexpr std::uint32_t kUnitSizes[] = {4, 16, 64, 256, 1024};

/// Packets of a full launch of the groups that are traced, as in the paper.
inline constexpr std::uint32_t kBatchPackets = 1024;

/// What a cell of Group::kStages is about: an NF of figure_chains() by itself, and the chain in which its packets are
/// on the device.
struct StagedNf {
  const char* alone;
  const char* resident;
};
inline constexpr StagedNf kStagedNfs[] = {{"IPsec", "IPsec-resident"}, {"NIDS", "NIDS-resident"}};

/// Of Group::kPlaces: ways with one copy of the chain, or as many as are fastest.
struct PlacedWay {
  const char* mode;
  bool is_best;
};
inline constexpr PlacedWay kPlacedWays[] = {
    {kCpu, true}, {kAdaptive, false}, {kAdaptive, true}, {kAuto, false}, {kAuto, true}};
inline constexpr const char* kPlacedChains[] = {"C4", "S_d", "FNR"};

/// Chains of Group::kConflicts.
inline constexpr const char* kConflictChains[] = {"F", "F-I", "F-I-N"};

/// What each run measures anew.
std::vector<Cell> anchor_cells(Request const& request);
/// Everything else that is asked for.
std::vector<Cell> list_cells(Request const& request);
/// `tuning:` of the cell's chain file, where `usual` is that of most cells.
std::string tuning_of(Cell const& cell, std::string const& usual);

}  // namespace catena::bench
