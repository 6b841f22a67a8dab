// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/planner.hpp"

/// The number of packets per unit. AdaptChain, section V: s = ceil(B / P / k), with k units in a block moved by one
/// transfer. Thread rule: pure functions, any thread.
namespace catena::plan {

inline constexpr std::uint32_t kUnitsPerBlock = 4;
/// Bounds of unit_packets_for().
inline constexpr std::uint32_t kMinAutoUnitPackets = 16;
inline constexpr std::uint32_t kMaxAutoUnitPackets = 1024;

/// B: bytes at which a staged transfer to the device reaches 90 % of its speed. 0 if bytes or transfers cost nothing.
double block_bytes(CostModel const& costs);

/// P: bytes of a packet in a transfer of the plan, the mean over the transfers of frames or payloads; over all
/// transfers if no such transfer exists. 0 for a plan without GPU NFs.
double bytes_per_transfer(Plan const& plan);

/// Within the bounds; the upper one if P or B is 0.
std::uint32_t unit_packets_for(CostModel const& costs, Plan const& plan);

}  // namespace catena::plan
