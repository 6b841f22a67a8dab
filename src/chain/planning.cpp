// SPDX-License-Identifier: Apache-2.0
#include "chain/planning.hpp"

#include "chain/instances.hpp"
#include "chain/port_kind.hpp"
#include "chain/segments.hpp"
#include "gpu/launch/adapt.hpp"
#include "packet/memory/unit.hpp"
#include "plan/unit_size.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <span>

namespace catena::chain {
namespace {

/// What the planner and the kernel layer need to know of a chain that is not run.
struct Inputs {
  std::vector<std::unique_ptr<nf::Instance>> instances;
  std::vector<std::optional<nf::KernelSide>> sides;
  plan::PlanInput plan;
};

Result<Inputs> inputs_of(ChainConfig const& config, SyncOptions const& options, nf::Registry const& registry) {
  Inputs inputs;
  CATENA_ASSIGN_OR_RETURN(inputs.plan, plan_input(config, options));
  for (NfConfig const& entry : config.nfs) {
    std::unique_ptr<nf::Instance> instance;
    if (!entry.plugin.empty()) {
      instance = stand_in_for_plugin(entry);
    } else {
      CATENA_ASSIGN_OR_RETURN(instance,
                              make_instance(entry, registry, false, ends_of(config.rx, config.tx), {0, config.shards}));
    }
    CATENA_ASSIGN_OR_RETURN(auto side, add_nf(entry, *instance, inputs.plan));
    inputs.sides.push_back(std::move(side));
    inputs.instances.push_back(std::move(instance));
  }
  add_ways(config, pointers_to(inputs.instances), inputs.plan);
  return inputs;
}

}  // namespace

bool is_mix_assumed(PortConfig const& rx) {
  return rx.kind->rx.profile == nullptr || (!rx.target.empty() && io::is_stream(rx.target));
}

Result<plan::PacketProfile> profile_of(PortConfig const& rx) {
  return is_mix_assumed(rx) ? plan::PacketProfile::imix() : rx.kind->rx.profile(rx);
}

Result<plan::PlanInput> plan_input(ChainConfig const& config, SyncOptions const& options) {
  plan::PlanInput input;
  if (options.packet_bytes) {
    input.profile = plan::PacketProfile::fixed(*options.packet_bytes);
  } else {
    CATENA_ASSIGN_OR_RETURN(input.profile, profile_of(config.rx));
  }
  input.costs = options.profile.costs;
  input.costs.packets_per_transfer = config.tuning.units_per_launch * unit_packets_of(config.tuning);
  input.costs.available &= static_cast<plan::MethodSet>(options.methods | plan::method_bit(TransferMethod::kStaged));
  input.mode = options.mode;
  input.pushdown = options.pushdown;
  return input;
}

Result<std::optional<nf::KernelSide>> add_nf(NfConfig const& entry, nf::Instance& instance, plan::PlanInput& input) {
  plan::PlacedNf nf;
  nf.name = instance.name();
  nf.hints = instance.nf().hints();
  nf.grows_by = instance.nf().grows_by();
  std::optional<nf::KernelSide> side;
  if (entry.isolation == Isolation::kProcess) {
    // it plans its own part; what it may do there to packets, nobody takes its word for
    nf.hints = {.cr = packet::kAllFields, .cw = packet::kAllFields};
  } else if (entry.on == plan::Processor::kGpu) {
    CATENA_ASSIGN_OR_RETURN(side, make_kernel_side(entry, instance));
    nf.on = plan::Processor::kGpu;
    nf.aux_bytes = instance.descriptor().aux_bytes;
    nf.result_bytes = instance.descriptor().result_bytes;
    nf.headroom = side->spec.headroom;
    nf.tailroom = side->spec.tailroom;
  }
  input.nfs.push_back(std::move(nf));
  return side;
}

void add_ways(ChainConfig const& config, std::span<nf::Instance* const> instances, plan::PlanInput& input) {
  if (config.graph) {
    input.edges = edges_of(*config.graph, config.nfs.size());
    for (std::size_t nf = 0; nf < input.nfs.size(); ++nf) {
      input.nfs[nf].hints.complete_reads |= reads_of(*config.graph, nf);
    }
    return;
  }
  for (Segment const& segment : segments_of(config, instances)) {
    if (segment.first == 0) {
      continue;
    }
    nf::Hints& hints = input.nfs[segment.first].hints;
    hints.prepare_reads |= packet::kAllFields;
    if (config.devices.size() > 1) {
      // the next may be another one, which has nothing of the packet: as if the host wrote all of each
      hints.prepare_writes |= packet::kAllFields;
      hints.prepare_writes_few = packet::kNoFields;
    }
  }
}

std::optional<copy::SharedStep> shared_step(plan::GpuStep const& step) {
  if (!step.shared) {
    return std::nullopt;
  }
  copy::SharedStep result;
  result.to_device = step.to_device;
  result.to_host = step.to_host;
  for (plan::Move const& move : step.moves) {
    const bool in = move.direction == Direction::kToDevice;
    if (move.kind == plan::TransferShape::Kind::kColumns && (move.fields & packet::kFrameFields) != 0) {
      (in ? result.columns_in : result.columns_out) = move.method;
    } else if (move.kind == plan::TransferShape::Kind::kBody) {
      (in ? result.body_in : result.body_out) = move.method;
    }
  }
  return result;
}

std::vector<packet::FieldSet> only_on_device(plan::PlanInput const& input, plan::Plan const& plan) {
  const std::vector<plan::PlanEdge> edges = plan::edges_of(input);
  std::vector<packet::FieldSet> before(input.nfs.size());
  for (std::size_t i = 0; i < input.nfs.size(); ++i) {
    plan::Hints const& hints = input.nfs[i].hints;
    // what prepare() writes for some packets, the plan has brought to the host before
    before[i] &= ~hints.prepare_writes;
    packet::FieldSet after = before[i];
    if (plan.nfs[i].step && plan.nfs[i].step->shared) {
      after = (after | hints.gw) & ~plan.nfs[i].step->to_host;
    } else if (!plan.nfs[i].step) {
      after &= ~hints.cw;
    }
    after &= ~hints.complete_writes;
    for (plan::PlanEdge const& edge : edges) {
      if (edge.from == i && edge.to != plan::kTx && !edge.is_copy) {
        before[edge.to] |= after;
      }
    }
  }
  return before;
}

Result<std::uint32_t> suited_unit_packets(ChainConfig const& config, SyncOptions const& options,
                                          nf::Registry const& registry) {
  static_assert(plan::kMaxAutoUnitPackets == memory::kMaxUnitPackets);
  CATENA_ASSIGN_OR_RETURN(const Inputs inputs, inputs_of(config, options, registry));
  CATENA_ASSIGN_OR_RETURN(const plan::Plan plan, plan::make_plan(inputs.plan));
  return std::min(plan::unit_packets_for(inputs.plan.costs, plan), kMaxLaunchPackets / config.tuning.units_per_launch);
}

Result<ChainPlan> plan_chain(ChainConfig const& config, RunOptions const& options, nf::Registry const& registry) {
  CATENA_ASSIGN_OR_RETURN(const Inputs inputs, inputs_of(config, options.sync, registry));
  ChainPlan chain;
  CATENA_ASSIGN_OR_RETURN(chain.path, data_path_of(config, options, pointers_to(inputs.instances)));
  CATENA_ASSIGN_OR_RETURN(chain.plans, plan::compare(inputs.plan));
  return chain;
}

Result<std::vector<AdaptedProgram>> adapted_programs(ChainConfig const& config, SyncOptions const& options,
                                                     nf::Registry const& registry, std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(Inputs inputs, inputs_of(config, options, registry));
  const auto found =
      std::find_if(config.nfs.begin(), config.nfs.end(), [name](NfConfig const& entry) { return entry.name == name; });
  if (found == config.nfs.end()) {
    return absl::NotFoundError(concat(config.source.file, ": the chain has no NF named '", name, "'"));
  }
  const auto position = static_cast<std::size_t>(found - config.nfs.begin());
  if (found->isolation == Isolation::kProcess && found->on == plan::Processor::kGpu) {
    return absl::InvalidArgumentError(concat(found->position, ": NF '", name,
                                             "' has its program made in its own process; `catena check-kernel FILE...` "
                                             "checks the source of a kernel"));
  }
  if (!inputs.sides[position]) {
    return absl::InvalidArgumentError(
        concat(found->position, ": NF '", name, "' works on the CPU; only NFs with `on: gpu` have a program"));
  }
  CATENA_ASSIGN_OR_RETURN(const plan::Plan plan, plan::make_plan(inputs.plan));
  kernel::KernelSpec const& spec = inputs.sides[position]->spec;
  const copy::LaunchPlan launch_plan = inputs.instances[position]->launch_plan(shared_step(*plan.nfs[position].step));
  std::vector<AdaptedProgram> programs;
  programs.push_back({concat(name, ": ", spec.source.front().name), kernel::adapt(spec, launch_plan)});
  if (launch_plan.shared) {
    programs.push_back({concat(name, ": moves to the device"), copy::transfer_source(launch_plan, true)});
    programs.push_back({concat(name, ": moves to the host"), copy::transfer_source(launch_plan, false)});
  }
  return programs;
}

}  // namespace catena::chain
