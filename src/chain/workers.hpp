// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// How many threads work on a chain, and where.
namespace catena::chain {

/// Cores that this process may use, in ascending order.
std::vector<std::uint32_t> usable_cores();

/// A list of cores as taskset has it: "0,2-5". InvalidArgument for another text, a core named twice, and one that this
/// process may not use; the message lists those that it may.
Result<std::vector<std::uint32_t>> parse_cores(std::string_view text);

/// Workers for a chain whose file and options say nothing of them, with `cores` to use: one per core and at most one
/// per stage; half as many, but one, where packets come from interfaces of the kernel, which does as much for each of
/// them on the same cores (bench/results/2026-11-22-live-iperf3 has the measurement).
std::uint32_t default_workers(PortConfig const& rx, std::size_t stages, std::uint32_t cores);

/// Shards of a chain that leaves their number open, on so many cores: as many as may gain from it. `own_ends`: where
/// each has a source of its own. Then one for each core, or for each four where an NF is on a gpu, so that launches
/// stay large; else one for each core but those of rx and tx, where there is an NF on the CPU. An NF `on: auto` counts
/// as one on each. At least one for each device.
std::uint32_t auto_shards(ChainConfig const& config, bool own_ends, std::uint32_t cores);

}  // namespace catena::chain
