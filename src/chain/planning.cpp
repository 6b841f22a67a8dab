// SPDX-License-Identifier: Apache-2.0
#include "chain/planning.hpp"

#include "chain/instances.hpp"

#include <catena/core/text.hpp>

namespace catena::chain {
namespace {

kernel::Route route_of(plan::Method method) {
  switch (method) {
    case plan::Method::kStrided:
      return kernel::Route::kStrided;
    case plan::Method::kGather:
      return kernel::Route::kMapped;
    case plan::Method::kStaged:
      break;
  }
  return kernel::Route::kStaged;
}

}  // namespace

plan::PlacedNf placed(nf::Instance& instance, nf::KernelSide const* side) {
  plan::PlacedNf nf;
  nf.name = instance.name();
  nf.hints = instance.nf().hints();
  if (side != nullptr) {
    nf.on = plan::Processor::kGpu;
    nf.aux_bytes = side->spec.aux_bytes;
    nf.result_bytes = side->spec.result_bytes;
    nf.headroom = side->spec.headroom;
    nf.tailroom = side->spec.tailroom;
  }
  return nf;
}

plan::PacketProfile profile_of(PortConfig const& rx) {
  if (rx.kind == PortKind::kGenerator && rx.generator.packet_bytes != 0) {
    return plan::PacketProfile::fixed(rx.generator.packet_bytes);
  }
  return plan::PacketProfile::imix();
}

std::optional<kernel::SharedStep> shared_step(plan::GpuStep const& step) {
  if (!step.shared) {
    return std::nullopt;
  }
  kernel::SharedStep result;
  result.to_device = step.to_device;
  result.to_host = step.to_host;
  for (plan::Move const& move : step.moves) {
    const bool in = move.direction == plan::Direction::kToDevice;
    if (move.kind == plan::Load::Kind::kColumns) {
      (in ? result.columns_in : result.columns_out) = route_of(move.method);
    } else if (move.kind == plan::Load::Kind::kBody) {
      (in ? result.body_in : result.body_out) = route_of(move.method);
    }
  }
  return result;
}

std::vector<bool> host_is_current(std::vector<plan::PlacedNf> const& nfs, plan::Plan const& plan) {
  std::vector<bool> current;
  packet::FieldSet on_device_only = 0;
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    plan::Hints const& hints = nfs[i].hints;
    on_device_only &= ~hints.prepare_writes;
    current.push_back(on_device_only == 0);
    if (plan.nfs[i].step && plan.nfs[i].step->shared) {
      on_device_only = (on_device_only | hints.gw) & ~plan.nfs[i].step->to_host;
    } else if (!plan.nfs[i].step) {
      on_device_only &= ~hints.cw;
    }
    on_device_only &= ~hints.complete_writes;
  }
  return current;
}

Result<plan::Mode> parse_sync_option(std::string_view text) {
  for (const plan::Mode mode : {plan::Mode::kCopy, plan::Mode::kShared, plan::Mode::kAdaptive}) {
    if (text == plan::to_string(mode)) {
      return mode;
    }
  }
  return absl::InvalidArgumentError(concat("--sync is '", text, "'; allowed: copy, shared, adaptive"));
}

Result<plan::Comparison> plan_chain(ChainConfig const& config, SyncOptions const& options,
                                    nf::Registry const& registry) {
  CATENA_RETURN_IF_ERROR(start_eal({}, {}));
  plan::PlanInput input;
  input.profile = profile_of(config.rx);
  input.costs = options.costs;
  input.pushdown = options.pushdown;
  for (NfConfig const& entry : config.nfs) {
    CATENA_ASSIGN_OR_RETURN(const auto instance, make_instance(entry, registry, false));
    if (entry.on == Placement::kGpu) {
      CATENA_ASSIGN_OR_RETURN(const nf::KernelSide side, make_kernel_side(entry, *instance));
      input.nfs.push_back(placed(*instance, &side));
    } else {
      input.nfs.push_back(placed(*instance, nullptr));
    }
  }
  return plan::compare(input);
}

}  // namespace catena::chain
