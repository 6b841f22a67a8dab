// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/cost_profile.hpp"

#include "nf/registry.hpp"
#include "plan/planner.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Between a chain and its plan.
namespace catena::chain {

/// Frame sizes and headers of the chain's traffic: the generator's or the replay's, or those of the first 10,000 frames
/// of a capture that is no stream. Of other sources nothing is known before they run: IMIX stands for them, and for an
/// empty capture. Errors: the capture cannot be read.
Result<plan::PacketProfile> profile_of(PortConfig const& rx);

/// Whether profile_of() had to assume.
bool is_mix_assumed(PortConfig const& rx);

/// The plan's step as the kernel layer takes it; nothing for direct use.
std::optional<copy::SharedStep> shared_step(plan::GpuStep const& step);

/// For each NF, the fields whose newest values are in the shared buffer alone when packets come to it. On some path:
/// where they are on the host, too, on another one, a right plan has them on the device on all.
std::vector<packet::FieldSet> only_on_device(plan::PlanInput const& input, plan::Plan const& plan);

/// How a chain synchronizes host and device: `--sync`, `--pushdown` and `--methods`.
struct SyncOptions {
  plan::Mode mode = plan::Mode::kAdaptive;
  bool pushdown = true;
  CostProfile profile = CostProfile::built_in();
  plan::MethodSet methods = plan::kAllMethods;    ///< that plans may use; kStaged always
  std::optional<plan::Plan> plan = std::nullopt;  ///< to use instead of the planner's; must fit the chain
  /// Of packets, on average, as they were found to be; none: as profile_of() says.
  std::optional<std::uint32_t> packet_bytes = std::nullopt;
};

/// What the planner is told of a chain, but for its NFs. Errors: as profile_of().
Result<plan::PlanInput> plan_input(ChainConfig const& config, SyncOptions const& options);

/// Packets of a unit: what the chain says or, for `auto`, what suits the plan. `input` has all NFs; it learns how many
/// packets a transfer has. Errors: as plan::make_plan().
Result<std::uint32_t> settle_unit_packets(ChainConfig const& config, plan::PlanInput& input);

/// Adds an NF to what the planner is told, and gives its device side where it is placed on the gpu. Errors: as
/// make_kernel_side().
Result<std::optional<nf::KernelSide>> add_nf(NfConfig const& entry, nf::Instance& instance, plan::PlanInput& input);

/// Tells the planner which ways packets take, what steering reads of them, and where they change hands between shards:
/// there all of a packet has to be on the host, as whoever gets it may have another device, or none any more.
/// `instances`: all of the chain's, which `input` has.
void add_ways(ChainConfig const& config, std::span<std::unique_ptr<nf::Instance> const> instances,
              plan::PlanInput& input);
void add_ways(ChainConfig const& config, std::span<nf::Instance* const> instances, plan::PlanInput& input);

/// "copy", "shared" or "adaptive". InvalidArgument says what is allowed.
Result<plan::Mode> parse_sync_option(std::string_view text);

/// Transfer methods with commas in between. InvalidArgument says what is allowed.
Result<plan::MethodSet> parse_methods_option(std::string_view text);

/// The plans of a chain in every mode, as if a device were there that can do everything; for `catena plan`. Opens no
/// port and no device. Errors: as check().
Result<plan::Comparison> plan_chain(ChainConfig const& config, SyncOptions const& options,
                                    nf::Registry const& registry);

/// A program that a chain compiles.
struct AdaptedProgram {
  std::string title;  ///< "fw: firewall.kernel.cpp"
  device::ProgramSource source;
};
/// What would be compiled for the GPU NF `name` on such a device: its kernel, and the transfer kernels of a shared
/// step. Errors: as plan_chain(); NotFound: the chain has no NF of that name; InvalidArgument: it works on the CPU.
Result<std::vector<AdaptedProgram>> adapted_programs(ChainConfig const& config, SyncOptions const& options,
                                                     nf::Registry const& registry, std::string_view name);

}  // namespace catena::chain
