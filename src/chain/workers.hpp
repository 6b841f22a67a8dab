// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// The number of worker threads of a chain, and their cores.
namespace catena::chain {

/// Cores that this process may use, in ascending order.
std::vector<std::uint32_t> usable_cores();

/// A list of cores in the syntax of taskset: "0,2-5". InvalidArgument for another text, a core listed twice, and a core
/// not usable by this process; the message lists the usable ones.
Result<std::vector<std::uint32_t>> parse_cores(std::string_view text);

/// Workers of a chain without a number in its file and options, with `cores` usable cores: one per core and at most one
/// per stage. If rx has kernel interfaces, only half of the cores count, at least one: the kernel does as much work for
/// each worker on the same cores (bench/results/2026-11-22-live-iperf3 has the measurement).
std::uint32_t default_workers(PortConfig const& rx, std::size_t stages, std::uint32_t cores);

/// Shards of a chain without a fixed number, on `cores` cores: as many as may gain from it, at least one per device.
/// `own_ends`: each shard has its own source. Then one per core, or one per four cores if an NF is on a gpu, to keep
/// launches large; else one per core except those of rx and tx, if an NF is on the CPU. An NF `on: auto` counts as one
/// on each.
std::uint32_t auto_shards(ChainConfig const& config, bool own_ends, std::uint32_t cores);

}  // namespace catena::chain
