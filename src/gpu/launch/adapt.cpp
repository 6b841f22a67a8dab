// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/adapt.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include "gpu/program/program.hpp"

namespace catena::kernel {
namespace {

constexpr std::uint32_t kGrowthAlign = 16;  // rows of the spill area begin at multiples of the headroom's

Status check(KernelSpec const& spec, copy::LaunchPlan const& plan) {
  const auto wrong = [&spec](std::string const& what) {
    return absl::InvalidArgumentError(concat("kernel '", spec.name, "': ", what));
  };
  if (spec.source.empty()) {
    return wrong("no source files");
  }
  if (plan.aux_bytes % 4 != 0 || plan.aux_bytes > kMaxAuxBytes) {
    return wrong(concat("aux_bytes is ", plan.aux_bytes, "; it must be a multiple of 4 and at most ", kMaxAuxBytes));
  }
  if (plan.result_bytes % 4 != 0 || plan.result_bytes > kMaxResultBytes) {
    return wrong(
        concat("result_bytes is ", plan.result_bytes, "; it must be a multiple of 4 and at most ", kMaxResultBytes));
  }
  if (spec.headroom % kGrowthAlign != 0 || spec.headroom > packet::kSlotBytes) {
    return wrong(concat("headroom is ", spec.headroom, "; it must be a multiple of ", kGrowthAlign, " and at most ",
                        packet::kSlotBytes));
  }
  if (spec.tailroom > packet::kSlotBytes) {
    return wrong(concat("tailroom is ", spec.tailroom, "; it must be at most ", packet::kSlotBytes));
  }
  if (spec.lanes == 0 || spec.group_size % spec.lanes != 0 || spec.group_size == 0) {
    return wrong(concat("group_size ", spec.group_size, " is not a multiple of lanes ", spec.lanes));
  }
  return absl::OkStatus();
}

}  // namespace

device::ProgramSource adapt(KernelSpec const& spec, copy::LaunchPlan const& plan, Groups groups) {
  device::ProgramSource source = program::with_sdk(spec.source);
  const copy::Frames frames = copy::frames_of(plan.reads | plan.writes);
  program::define(source, "CATENA_SHARED", plan.shared ? 1 : 0);
  program::define_fields(source, "CATENA_READS",
                         plan.reads | (frames == copy::Frames::kFrame ? copy::kPlaces : packet::kNoFields));
  program::define_fields(source, "CATENA_WRITES", plan.writes);
  program::define_fields(source, "CATENA_IN_COLUMNS", copy::in_columns(plan));
  program::define_fields(source, "CATENA_OUT_COLUMNS", copy::out_columns(plan));
  program::define(source, "CATENA_FRAMES", static_cast<std::uint32_t>(frames));
  program::define(source, "CATENA_HEADROOM", spec.headroom);
  program::define(source, "CATENA_TAILROOM", spec.tailroom);
  program::define(source, "CATENA_LANES", spec.lanes);
  program::define(source, "CATENA_AUX_BYTES", plan.aux_bytes);
  program::define(source, "CATENA_RESULT_BYTES", plan.result_bytes);
  program::define(source, "CATENA_SPILL_FACTOR", spec.spill_factor);
  program::define(source, "CATENA_ANY_GROUPS", groups == Groups::kAny ? 1 : 0);
  return source;
}

Result<std::unique_ptr<device::Program>> build(device::Device& device, KernelSpec const& spec,
                                               copy::LaunchPlan const& plan, Groups groups) {
  CATENA_RETURN_IF_ERROR(check(spec, plan));
  return program::build(device, adapt(spec, plan, groups), concat("kernel '", spec.name, "'"));
}

}  // namespace catena::kernel
