// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/data_path.hpp"
#include "chain/sync_options.hpp"

#include "nf/registry.hpp"
#include "plan/planner.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Conversion of a chain to its plan, and of the plan for the chain.
namespace catena::chain {

/// Frame sizes and headers of the chain's traffic: of the generator or the replay, or of the first 10,000 frames of a
/// capture other than a stream. Other sources are unknown before they run: IMIX is assumed for them, and for an empty
/// capture. Errors: the capture cannot be read.
Result<plan::PacketProfile> profile_of(PortConfig const& rx);

/// Whether profile_of() has to assume a mix.
bool is_mix_assumed(PortConfig const& rx);

/// The plan's step in the form of the kernel layer; nullopt for a direct step.
std::optional<copy::SharedStep> shared_step(plan::GpuStep const& step);

/// For each NF, the fields whose newest values are in the shared buffer alone when packets arrive, on some path. If
/// such a field is also on the host on another path, a correct plan has it on the device on all paths.
std::vector<packet::FieldSet> only_on_device(plan::PlanInput const& input, plan::Plan const& plan);

/// The planner input of a chain, without its NFs. Errors: as profile_of().
Result<plan::PlanInput> plan_input(ChainConfig const& config, SyncOptions const& options);

/// Adds an NF to the planner input, and returns its device side if it is placed on the gpu. Errors: as
/// make_kernel_side().
Result<std::optional<nf::KernelSide>> add_nf(NfConfig const& entry, nf::Instance& instance, plan::PlanInput& input);

/// Adds to the planner input the edges of packets, the fields read by classifiers, and the reshard stages between
/// shards. At a reshard stage all of a packet has to be on the host, because the next shard may have another device, or
/// no device any more. `instances`: all of the chain's, also in `input`.
void add_ways(ChainConfig const& config, std::span<nf::Instance* const> instances, plan::PlanInput& input);

/// Packets per unit suited to the plan of a chain whose placement is decided, for a device with all capabilities.
/// Creates its NFs. Errors: as plan_chain().
Result<std::uint32_t> suited_unit_packets(ChainConfig const& config, SyncOptions const& options,
                                          nf::Registry const& registry);

/// Decisions about a chain with its layout and NFs.
struct ChainPlan {
  DataPath path;
  plan::Comparison plans;  ///< in every mode, for a device with all capabilities
};
/// For `catena plan`. Opens no port and no device; live ports count as undivided. `options.sync`
/// has the costs. Errors: as check().
Result<ChainPlan> plan_chain(ChainConfig const& config, RunOptions const& options, nf::Registry const& registry);

/// A program compiled for a chain.
struct AdaptedProgram {
  std::string title;  ///< "fw: firewall.kernel.cpp"
  device::ProgramSource source;
};
/// The programs of the GPU NF `name` on such a device: its kernel, and the transfer kernels of a shared step. Errors:
/// as plan_chain(); NotFound: the chain has no NF of this name; InvalidArgument: it runs on the CPU.
Result<std::vector<AdaptedProgram>> adapted_programs(ChainConfig const& config, SyncOptions const& options,
                                                     nf::Registry const& registry, std::string_view name);

}  // namespace catena::chain
