// SPDX-License-Identifier: Apache-2.0
#include "kernel/program.hpp"

#include <catena/core/text.hpp>

#include "catena_kernel_sdk.hpp"
#include "catena_kernel_transfer.hpp"
#include "catena_kernel_upload.hpp"
#include "device/hash.hpp"
#include "kernel/program_cache.hpp"

#include <spdlog/spdlog.h>

#include <optional>

namespace catena::kernel {

namespace {

constexpr std::uint32_t kGrowthAlign = 16;  // rows of the spill area begin at multiples of the headroom's

/// Only fields of fixed size can be in a column.
packet::FieldSet fixed_size(packet::FieldSet set) {
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    if (packet::field_size(field) == 0) {
      set &= ~(packet::FieldSet{1} << field);
    }
  }
  return set;
}

constexpr packet::FieldSet kPlaces = packet::fields(packet::kMetaLayers, packet::kMetaOffset, packet::kMetaLength);

/// Fields of a move that travel as columns: all of fixed size, but those in a frame that travels as one piece, and
/// those of the header where a kernel takes them from the packet pool.
packet::FieldSet shared_columns(packet::FieldSet moved, TransferMethod route) {
  const bool metadata_alone = packet::has_frame(moved) || route == TransferMethod::kGather;
  return fixed_size(metadata_alone ? moved & packet::kMetaFields : moved);
}

Status check(KernelSpec const& spec, LaunchPlan const& plan) {
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

/// Changes when what is compiled from the same source changes, e.g. the options given to a compiler.
constexpr std::string_view kRecipe = "catena program 1";

device::Hash128 cache_key(device::DeviceInfo const& info, device::ProgramSource const& source) {
  device::Hash128 key;
  key.add_field(kRecipe);
  key.add_field(info.backend).add_field(info.name).add_field(info.driver).add_field(info.target);
  for (device::SourceFile const& file : source.files) {
    key.add_field(file.name).add_field(file.text);
  }
  key.add_field("defines");
  for (std::string const& define : source.defines) {
    key.add_field(define);
  }
  return key;
}

}  // namespace

Frames frames_of(packet::FieldSet set) {
  if (packet::has_frame(set)) {
    return Frames::kFrame;
  }
  return packet::contains(set, packet::kPayload) ? Frames::kPayload : Frames::kNone;
}

packet::FieldSet in_columns(LaunchPlan const& plan) {
  if (plan.shared) {
    return shared_columns(plan.shared->to_device, plan.shared->columns_in);
  }
  // fields inside a frame that travels as a whole need no columns
  const packet::FieldSet named = packet::has_frame(plan.reads) ? plan.reads & packet::kMetaFields : plan.reads;
  return fixed_size(named) | (frames_of(plan.reads | plan.writes) == Frames::kFrame ? kPlaces : packet::kNoFields);
}

packet::FieldSet out_columns(LaunchPlan const& plan) {
  if (plan.shared) {
    // metadata that the kernel writes is in columns until it is done: its work-items must all see what was before
    return shared_columns(plan.shared->to_host, plan.shared->columns_out) | (plan.writes & packet::kMetaFields);
  }
  const packet::FieldSet named = packet::has_frame(plan.writes) ? plan.writes & packet::kMetaFields : plan.writes;
  packet::FieldSet columns = fixed_size(named);
  if (frames_of(plan.writes) != Frames::kNone && frames_of(plan.reads | plan.writes) == Frames::kFrame) {
    columns |= packet::fields(packet::kMetaLength, packet::kMetaOffset);
  }
  return columns;
}

namespace {

/// `files` and the SDK, without macros.
device::ProgramSource with_sdk(std::span<const EmbeddedFile> files) {
  device::ProgramSource source;
  for (EmbeddedFile const& file : files) {
    source.files.push_back({file.name, file.text});
  }
  for (EmbeddedFile const& file : catena_kernel_sdk()) {
    source.files.push_back({file.name, file.text});
  }
  return source;
}

void define(device::ProgramSource& source, std::string_view name, std::uint32_t value) {
  source.defines.push_back(concat(name, "=", value, "U"));
}

/// `UL` is a u64 in every dialect.
void define_fields(device::ProgramSource& source, std::string_view name, packet::FieldSet fields) {
  source.defines.push_back(concat(name, "=", fields, "UL"));
}

}  // namespace

device::ProgramSource adapt(KernelSpec const& spec, LaunchPlan const& plan) {
  device::ProgramSource source = with_sdk(spec.source);
  const Frames frames = frames_of(plan.reads | plan.writes);
  define(source, "CATENA_SHARED", plan.shared ? 1 : 0);
  define_fields(source, "CATENA_READS", plan.reads | (frames == Frames::kFrame ? kPlaces : packet::kNoFields));
  define_fields(source, "CATENA_WRITES", plan.writes);
  define_fields(source, "CATENA_IN_COLUMNS", in_columns(plan));
  define_fields(source, "CATENA_OUT_COLUMNS", out_columns(plan));
  define(source, "CATENA_FRAMES", static_cast<std::uint32_t>(frames));
  define(source, "CATENA_HEADROOM", spec.headroom);
  define(source, "CATENA_TAILROOM", spec.tailroom);
  define(source, "CATENA_LANES", spec.lanes);
  define(source, "CATENA_AUX_BYTES", plan.aux_bytes);
  define(source, "CATENA_RESULT_BYTES", plan.result_bytes);
  define(source, "CATENA_SPILL_FACTOR", spec.spill_factor);
  return source;
}

device::ProgramSource transfer_source(LaunchPlan const& plan, bool in) {
  SharedStep const& step = *plan.shared;
  const packet::FieldSet moved = in ? step.to_device : step.to_host;
  const TransferMethod route = in ? step.columns_in : step.columns_out;
  device::ProgramSource source = with_sdk(catena_kernel_transfer());
  define_fields(source, "CATENA_COLUMNS", in ? in_columns(plan) : out_columns(plan));
  define_fields(
      source, "CATENA_MAPPED_COLUMNS",
      route == TransferMethod::kGather && !packet::has_frame(moved) ? fixed_size(moved & packet::kFrameFields) : 0);
  define_fields(source, "CATENA_WRITTEN", in ? 0 : out_columns(plan) & plan.writes);
  define(source, "CATENA_BODY", static_cast<std::uint32_t>(frames_of(moved)));
  return source;
}

device::ProgramSource upload_source() { return with_sdk(catena_kernel_upload()); }

Result<std::unique_ptr<device::Program>> build(device::Device& device, KernelSpec const& spec, LaunchPlan const& plan) {
  CATENA_RETURN_IF_ERROR(check(spec, plan));
  return build(device, adapt(spec, plan), concat("kernel '", spec.name, "'"));
}

Result<std::unique_ptr<device::Program>> build(device::Device& device, device::ProgramSource const& source,
                                               std::string_view what) {
  const ProgramCache cache = ProgramCache::from_environment();
  const device::Hash128 key = cache_key(device.info(), source);

  if (const std::optional<device::Binary> cached = cache.find(key)) {
    Result<std::unique_ptr<device::Program>> program = device.load(*cached);
    if (program.ok()) {
      return program;
    }
    CATENA_RETURN_IF_ERROR(device.failed());
    spdlog::warn("{}: the cached program does not load and is compiled anew: {}", what,
                 std::string(program.status().message()));
  }
  CATENA_ASSIGN_OR_RETURN(const device::Binary binary, device.compile(source));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Program> program, device.load(binary));
  cache.store(key, binary);
  return program;
}

}  // namespace catena::kernel
