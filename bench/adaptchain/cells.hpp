// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/adaptchain/results.hpp"

#include <cstdint>
#include <string>

namespace catena::bench {

/// Packets of a full launch of the parts that are traced, as in the paper.
inline constexpr std::uint32_t kBatchPackets = 1024;

/// What a cell of Part::kStages is about: an NF of figure_chains() by itself, and the chain in which its packets are on
/// the device.
struct StagedNf {
  const char* nf;  ///< its name in both chains
  const char* alone;
  const char* resident;
};
inline constexpr StagedNf kStagedNfs[] = {{"vpn", "IPsec", "IPsec-resident"}, {"ids", "NIDS", "NIDS-resident"}};

/// Chains of Part::kConflicts, and the NF that is looked at.
inline constexpr const char* kConflictChains[] = {"F", "F-I", "F-I-N"};
inline constexpr const char* kConflictNf = "fw";

/// Adds to `results` everything that the options, whose sizes are given, ask for, and a note about what this build does
/// not have.
void list_cells(PaperOptions const& options, Results& results);
/// `tuning:` of the cell's chain file, where `usual` is that of most cells.
std::string tuning_of(Cell const& cell, std::string const& usual);

}  // namespace catena::bench
