// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/launch_plan.hpp"

#include "catena_kernel_transfer.hpp"
#include "catena_kernel_upload.hpp"
#include "gpu/copy/transfer_params.hpp"
#include "gpu/program/program.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace catena::copy {
namespace {

/// Fields of a move that travel as columns: all of fixed size, but those in a frame that travels as one piece, and
/// those of the header where a kernel takes them from the packet pool.
packet::FieldSet shared_columns(packet::FieldSet moved, TransferMethod route) {
  const bool metadata_alone = packet::has_frame(moved) || needs_mapped_pool(route);
  return fixed_size(metadata_alone ? moved & packet::kMetaFields : moved);
}

constexpr std::string_view kColumns = "CATENA_COLUMNS";
constexpr std::string_view kMappedColumns = "CATENA_MAPPED_COLUMNS";
constexpr std::string_view kWritten = "CATENA_WRITTEN";
constexpr std::string_view kBody = "CATENA_BODY";

/// A macro of a transfer, with a number.
bool is_own_define(std::string_view define) {
  const std::string_view name = define.substr(0, define.find('='));
  std::string_view number = define.substr(std::min(name.size() + 1, define.size()));
  number = number.substr(0, number.find_last_not_of("UL") + 1);
  constexpr std::array kNames{kColumns, kMappedColumns, kWritten, kBody};
  return std::ranges::find(kNames, name) != kNames.end() && !number.empty() &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Frames frames_of(packet::FieldSet set) {
  if (packet::has_frame(set)) {
    return Frames::kFrame;
  }
  return packet::contains(set, packet::kPayload) ? Frames::kPayload : Frames::kNone;
}

packet::FieldSet fixed_size(packet::FieldSet set) {
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    if (packet::field_size(field) == 0) {
      set &= ~(packet::FieldSet{1} << field);
    }
  }
  return set;
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

device::ProgramSource transfer_source(LaunchPlan const& plan, bool in) {
  SharedStep const& step = *plan.shared;
  const packet::FieldSet moved = in ? step.to_device : step.to_host;
  const bool is_mapped = needs_mapped_pool(in ? step.columns_in : step.columns_out) && !packet::has_frame(moved);
  device::ProgramSource source = program::with_sdk(catena_kernel_transfer());
  program::define_fields(source, kColumns, in ? in_columns(plan) : out_columns(plan));
  program::define_fields(source, kMappedColumns, is_mapped ? fixed_size(moved & packet::kFrameFields) : 0);
  program::define_fields(source, kWritten, in ? 0 : out_columns(plan) & plan.writes);
  program::define(source, kBody, static_cast<std::uint32_t>(frames_of(moved)));
  return source;
}

device::ProgramSource upload_source() { return program::with_sdk(catena_kernel_upload()); }

std::optional<device::LaunchForm> form_of_own(device::ProgramSource const& source) {
  if (!std::ranges::all_of(source.defines, is_own_define)) {
    return std::nullopt;
  }
  if (source.files == program::with_sdk(catena_kernel_transfer()).files) {
    return device::LaunchForm{.buffers = 4, .struct_bytes = sizeof(TransferParams)};
  }
  if (source.files == upload_source().files) {
    return device::LaunchForm{.buffers = 2};
  }
  return std::nullopt;
}

}  // namespace catena::copy
