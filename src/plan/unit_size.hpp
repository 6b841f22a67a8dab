// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/planner.hpp"

/// How many packets travel together. AdaptChain, section V: s = ceil(B / P / k), with k units in a block that one
/// transfer moves. Thread rule: pure functions, any thread.
namespace catena::plan {

inline constexpr std::uint32_t kUnitsPerBlock = 4;
/// Bounds of unit_packets_for().
inline constexpr std::uint32_t kMinAutoUnitPackets = 16;
inline constexpr std::uint32_t kMaxAutoUnitPackets = 1024;

/// B: bytes with which a staged transfer to the device reaches 90 % of its speed. 0 where bytes or transfers cost
/// nothing.
double block_bytes(CostModel const& costs);

/// P: bytes of a packet that a transfer of the plan moves, the mean over those that move frames or payloads, or where
/// there are none over all. 0 for a plan without GPU NFs.
double bytes_per_transfer(Plan const& plan);

/// Between the bounds; the upper one where P or B is 0.
std::uint32_t unit_packets_for(CostModel const& costs, Plan const& plan);

}  // namespace catena::plan
