// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/shared_copy.hpp"

#include "gpu/copy/transfer_params.hpp"

#include <catena/kernel/shared_layout.hpp>

#include "gpu/copy/layout.hpp"
#include "gpu/copy/rewritten.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::copy {

using kernel::FaultReport;
using kernel::LaunchHeader;
using kernel::padded_rows;

namespace {

constexpr std::size_t kUploadBlockBytes = sizeof(UploadBlock);
/// The kernel that moves in also uploads the launch buffer where it has no more work-items than this: one launch less
/// is a shorter path, but its work-items ask the host's memory for the same slot numbers again and again.
constexpr std::uint32_t kMaxFusedUploadItems = 8192;

u32 blocks_of(std::size_t bytes) { return static_cast<u32>(round_up(bytes, kUploadBlockBytes) / kUploadBlockBytes); }

}  // namespace

SharedCopy::SharedCopy(CopyRequest const& request, std::uint32_t max_packets)
    : LaunchCopy(request, max_packets),
      in_(make_side(true)),
      out_(make_side(false)),
      columns_in_(in_.columns),
      columns_out_(out_.columns, out_.moved) {}

SharedCopy::Side SharedCopy::make_side(bool in) const {
  LaunchPlan const& plan = *request_.plan;
  SharedStep const& step = *plan.shared;
  Side side;
  side.moved = in ? step.to_device : step.to_host;
  side.columns = in ? in_columns(plan) : out_columns(plan);
  side.body = frames_of(side.moved);
  const bool maps_header_fields = needs_mapped_pool(in ? step.columns_in : step.columns_out) &&
                                  !packet::has_frame(side.moved) && (side.moved & packet::kFrameFields) != 0;
  side.has_kernel = side.columns != 0 || maps_header_fields;
  if (side.body != Frames::kNone) {
    side.mover.emplace(in ? step.body_in : step.body_out, in ? Direction::kToDevice : Direction::kToHost,
                       side.body == Frames::kPayload, request_.shared->mapped() != nullptr);
  }
  return side;
}

Rows::Needs SharedCopy::needs() const {
  const auto needs_runs = [](Side const& side) { return side.mover && side.mover->needs_contiguity(); };
  return {.passed = true, .runs = needs_runs(in_) || needs_runs(out_)};
}

SharedCopy::Layout SharedCopy::layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const {
  LaunchPlan const& plan = *request_.plan;
  Layout layout;
  layout.padded = padded_rows(rows);
  const std::size_t padded = layout.padded;
  layout.columns = sizeof(LaunchHeader);
  layout.aux = layout.columns + padded * packet::columns_size(in_.columns);
  layout.slots = layout.aux + padded * plan.aux_bytes;
  layout.extents_in = round_up(layout.slots + padded * sizeof(std::uint32_t), kBufferAlign);
  layout.extents_out = layout.extents_in + (frames_in > 0 ? padded * sizeof(StagingExtent) : 0);
  layout.frames_in = round_up(layout.extents_out + (frames_out > 0 ? padded * sizeof(StagingExtent) : 0), kBufferAlign);
  layout.out = round_up(layout.frames_in + frames_in, kBufferAlign);
  layout.out_columns = layout.out + sizeof(FaultReport) + padded;
  layout.results = layout.out_columns + padded * packet::columns_size(out_.columns);
  layout.frames_out = round_up(layout.results + padded * plan.result_bytes, kBufferAlign);
  layout.end = layout.frames_out + frames_out;
  return layout;
}

Status SharedCopy::allocate(device::Stream& stream) {
  const auto max_frames_bytes = [this](Side const& side) {
    return side.mover ? side.mover->max_staging_bytes(max_packets()) : 0;
  };
  const Layout most = layout_for(max_packets(), max_frames_bytes(in_), max_frames_bytes(out_));
  CATENA_RETURN_IF_ERROR(allocate_memory(stream, round_up(most.end, kUploadBlockBytes),
                                         round_up(most.out_columns, kUploadBlockBytes),
                                         round_up(most.end - most.out, kUploadBlockBytes)));
  layout_ = layout_for(0, 0, 0);
  return absl::OkStatus();
}

void SharedCopy::choose_method(Side& side) {
  side.body_copy = nullptr;
  side.path = KernelPath::kNone;
  side.frames_bytes = 0;
  if (!side.mover || rows_->size() == 0) {
    return;
  }
  kernel::KernelSpec const& spec = *request_.spec;
  packet::MetaColumns const& meta = rows_->unit(0).meta();
  side.bodies = {request_.shared->pool(),
                 &request_.shared->buffer(),
                 &meta,
                 rows_->slots(),
                 rows_->own(),
                 side.body == Frames::kPayload,
                 spec.headroom,
                 spec.tailroom};
  side.body_copy = &side.mover->choose(side.bodies, side.frames_bytes);
  side.path = kernel_path(side.body_copy->method());
}

void SharedCopy::write_head() {
  const LaunchHeader head = rows_ == nullptr ? LaunchHeader{0, 0, blocks_of(bytes_in()), 0}
                                             : LaunchHeader{rows_->size(), rows_->decided(), blocks_of(bytes_in()), 0};
  std::memcpy(staging_->bytes().data(), &head, sizeof head);
}

void SharedCopy::fill_staging(std::span<const std::span<const std::byte>> aux, std::vector<hostcopy::Move>& moves) {
  write_head();
  std::byte* host = staging_->bytes().data();
  std::byte* columns = host + layout_.columns;
  for (std::size_t i = 0; i < rows_->units(); ++i) {
    columns_in_.gather(rows_->decided(i), columns, layout_.padded, rows_->first_decided(i));
    columns_in_.gather(rows_->passed(i), columns, layout_.padded, rows_->first_passed(i));
    if (!aux[i].empty()) {
      std::memcpy(host + layout_.aux + std::size_t{rows_->first_decided(i)} * request_.plan->aux_bytes, aux[i].data(),
                  aux[i].size());
    }
  }
  std::memcpy(host + layout_.slots, rows_->slots().data(), rows_->slots().size_bytes());
  const auto write_extents = [host](Side const& side, std::size_t at) {
    if (const auto extents =
            side.body_copy == nullptr ? std::span<const StagingExtent>() : side.body_copy->staging_extents();
        !extents.empty()) {
      std::memcpy(host + at, extents.data(), extents.size_bytes());
    }
  };
  write_extents(in_, layout_.extents_in);
  write_extents(out_, layout_.extents_out);
  if (in_.body_copy != nullptr) {
    in_.body_copy->moves_in({host + layout_.frames_in, in_.frames_bytes}, moves);
  }
  std::byte* faults = writes_to_host() ? out(layout_.out) : host + layout_.out;
  std::memset(faults, 0, layout_.out_columns - layout_.out);
}

bool SharedCopy::needs_kernel(Side const& side) const {
  return is_warming_up_ || side.has_kernel || side.path != KernelPath::kNone;
}

std::uint32_t SharedCopy::lane_bits(Side const& side, std::uint32_t max_rows) {
  if (side.body == Frames::kNone) {
    return 0;
  }
  return max_rows <= kFewPackets ? kTransferLaneBitsOfFew : kTransferLaneBits;
}

bool SharedCopy::fused_upload(std::uint32_t max_rows) const {
  const std::uint32_t bits = lane_bits(in_, max_rows);
  return reads_host_memory() && needs_kernel(in_) && (bits == 0 || max_rows << bits <= kMaxFusedUploadItems);
}

std::uint32_t SharedCopy::max_upload_blocks(std::uint32_t rows) const {
  return blocks_of(layout_for(rows, in_.frames_bytes, out_.frames_bytes).out_columns);
}

Status SharedCopy::launch_transfer(device::CommandRecorder& target, Side const& side, std::uint32_t max_rows,
                                   bool fused_upload) {
  const bool in = &side == &in_;
  TransferParams params{};
  params.slots_offset = sizeof(LaunchHeader);
  params.slots_row_bytes = packet::columns_size(in_.columns) + request_.plan->aux_bytes;
  params.slots = request_.shared->slots();
  params.extents_offset = in ? layout_.extents_in : layout_.extents_out;
  params.frames_offset = in ? layout_.frames_in : layout_.frames_out;
  params.frames_bytes = side.frames_bytes;
  params.flags_offset = offset_in_out_buffer(layout_.out) + sizeof(FaultReport);
  params.body = side.path;
  params.fused_upload = fused_upload ? 1 : 0;
  params.lane_bits = lane_bits(side, max_rows);
  const std::array<device::KernelArgument, 6> arguments{batch_.get(),
                                                        fused_upload ? staging_->window() : &out_buffer(),
                                                        &request_.shared->buffer(),
                                                        request_.shared->mapped(),
                                                        std::as_bytes(std::span(&params, 1)),
                                                        device::BufferSizes{}};
  const std::uint64_t blocks = fused_upload ? max_upload_blocks(max_rows) : 0;
  // there may be more of a few packets than of many
  const std::uint64_t of_few =
      is_warming_up_ ? std::uint64_t{std::min(max_rows, kFewPackets)} << kTransferLaneBitsOfFew : 0;
  const std::uint64_t work_items =
      std::max({std::uint64_t{max_rows} << params.lane_bits, blocks, of_few, std::uint64_t{1}});
  const device::LaunchShape shape{static_cast<std::uint32_t>((work_items + kTransferGroup - 1) / kTransferGroup),
                                  kTransferGroup, 0};
  return target.launch(in ? request_.moves->move_in() : request_.moves->move_out(), shape, arguments);
}

Status SharedCopy::launch_upload(device::CommandRecorder& target, std::uint32_t max_rows) {
  const std::array<device::KernelArgument, 3> arguments{batch_.get(), staging_->window(), device::BufferSizes{}};
  const std::uint32_t max_blocks = max_upload_blocks(max_rows);
  return target.launch(request_.moves->upload(),
                       {(max_blocks + kTransferGroup - 1) / kTransferGroup, kTransferGroup, 0}, arguments);
}

Status SharedCopy::launch_in(device::CommandRecorder& target, std::uint32_t max_rows) {
  const bool is_fused = fused_upload(max_rows);
  if (reads_host_memory() && (!is_fused || is_warming_up_)) {
    CATENA_RETURN_IF_ERROR(launch_upload(target, max_rows));
  }
  return needs_kernel(in_) ? launch_transfer(target, in_, max_rows, is_fused) : absl::OkStatus();
}

KernelArguments SharedCopy::kernel_arguments() const {
  kernel::LaunchParams params{};
  params.batch_offset = sizeof(LaunchHeader);
  params.out_offset = offset_in_out_buffer(layout_.out);
  params.spill_row_bytes = std::uint64_t{packet::kSlotBytes} * request_.spec->spill_factor;
  params.slots = request_.shared->slots();
  return {batch_.get(), &out_buffer(), params};
}

Status SharedCopy::launch_out(device::CommandRecorder& target, std::uint32_t max_rows) {
  return needs_kernel(out_) ? launch_transfer(target, out_, max_rows, false) : absl::OkStatus();
}

std::optional<BodyPaths> SharedCopy::repeatable() const {
  const bool is_same =
      reads_host_memory() && writes_to_host() && in_.path != KernelPath::kStaging && out_.path != KernelPath::kStaging;
  return is_same ? std::optional(BodyPaths{in_.path, out_.path}) : std::nullopt;
}

void SharedCopy::assume_default(std::uint32_t rows) {
  for (Side* side : {&in_, &out_}) {
    side->path = side->mover ? kernel_path(side->mover->default_method(rows)) : KernelPath::kNone;
  }
}

Status SharedCopy::warm_up_in(device::Stream& stream) {
  is_warming_up_ = true;
  write_head();
  if (!reads_host_memory()) {
    CATENA_RETURN_IF_ERROR(stream.copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  return launch_in(stream, max_packets());
}

Status SharedCopy::warm_up_out(device::Stream& stream) {
  CATENA_RETURN_IF_ERROR(launch_out(stream, max_packets()));
  is_warming_up_ = false;
  return absl::OkStatus();
}

Status SharedCopy::prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                           std::vector<hostcopy::Move>& moves) {
  rows_ = &rows;
  choose_method(in_);
  choose_method(out_);
  layout_ = layout_for(rows.size(), in_.frames_bytes, out_.frames_bytes);
  CATENA_RETURN_IF_ERROR(check_fits(layout_.end, bytes_in(), layout_.end - layout_.out));
  fill_staging(aux, moves);
  return absl::OkStatus();
}

Status SharedCopy::enqueue_in(device::Stream& stream) {
  if (!reads_host_memory()) {
    CATENA_RETURN_IF_ERROR(stream.copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  for (std::size_t i = 0; i < rows_->units(); ++i) {
    for (packet::Batch const& batch : {rows_->decided(i), rows_->passed(i)}) {
      CATENA_ASSIGN_OR_RETURN(const std::uint64_t bytes, enqueue_rewritten(stream, *request_.shared, batch));
      transfers_.bytes_to_device += bytes;
    }
  }
  return in_.body_copy != nullptr ? in_.body_copy->enqueue(stream) : absl::OkStatus();
}

Status SharedCopy::enqueue_out(device::Stream& stream) {
  if (out_.body_copy != nullptr) {
    CATENA_RETURN_IF_ERROR(out_.body_copy->enqueue(stream));
  }
  if (!writes_to_host()) {
    CATENA_RETURN_IF_ERROR(
        stream.copy_to_host(staging_out_->bytes().first(layout_.end - layout_.out), *batch_, layout_.out));
  }
  faults_ = out(layout_.out);
  results_ = out(layout_.results);
  count_transfers(bytes_in(), layout_.end - layout_.out);
  return absl::OkStatus();
}

void SharedCopy::count_transfers(std::size_t staged_in, std::size_t staged_out) {
  const auto beside_staging = [this](Side const& side) {
    const packet::FieldSet mapped =
        packet::has_frame(side.moved) ? 0 : side.moved & packet::kFrameFields & ~side.columns;
    return (side.body_copy == nullptr ? 0 : side.body_copy->bytes()) +
           std::uint64_t{rows_->size()} * packet::columns_size(mapped);
  };
  transfers_.packets += rows_->size();
  transfers_.bytes_to_device += staged_in + beside_staging(in_);
  transfers_.bytes_to_host += staged_out + beside_staging(out_);
}

kernel::Extent SharedCopy::spill_extent(std::uint32_t row) const {
  // where a row's area starts does not depend on its payload: the host may not know that yet when it is enqueued
  packet::MetaColumns const& meta = rows_->unit(rows_->unit_of(row)).meta();
  return {row * packet::kSlotBytes, meta.layers[rows_->slots()[row]].payload_length, 0};
}

const std::byte* SharedCopy::out_column(std::uint32_t field) const {
  const std::uint32_t prefix = packet::column_prefix(out_.columns, field);
  return prefix == packet::kNoColumn ? nullptr : out(layout_.out_columns + std::size_t{layout_.padded} * prefix);
}

/// Marks rows whose frame bounds, as the kernel left them, are not in the frame's staging extent.
void SharedCopy::check_frame_bounds(packet::Batch const& batch, std::uint32_t first_row) {
  kernel::KernelSpec const& spec = *request_.spec;
  const auto* offsets = reinterpret_cast<const std::uint16_t*>(out_column(packet::kMetaOffset));
  const auto* lengths = reinterpret_cast<const std::uint16_t*>(out_column(packet::kMetaLength));
  packet::MetaColumns const& meta = batch.meta();
  std::uint32_t row = first_row;
  for (const std::uint32_t slot : batch.slots()) {
    const std::uint32_t begin_before = meta.offset[slot];
    const std::uint32_t end_before = begin_before + meta.length[slot];
    const std::uint32_t begin = offsets != nullptr ? offsets[row] : begin_before;
    const std::uint32_t length = lengths != nullptr ? lengths[row] : end_before - begin_before;
    const bool fits = length >= packet::kEthernetBytes && begin + spec.headroom >= begin_before &&
                      begin + length <= std::min(end_before + spec.tailroom, packet::kSlotBytes);
    if (!fits && !faulted(row)) {
      mark_faulted(row, begin_before);
    }
    ++row;
  }
}

void SharedCopy::apply_rows(packet::Batch const& batch, std::uint32_t first_row, std::vector<hostcopy::Move>& moves) {
  const bool moves_frame_bounds =
      (request_.plan->writes & packet::fields(packet::kMetaOffset, packet::kMetaLength)) != 0;
  if (moves_frame_bounds && first_row < rows_->decided()) {
    check_frame_bounds(batch, first_row);
  }
  // what a faulted row says about its packet is not believed
  columns_out_.scatter(batch, out(layout_.out_columns), layout_.padded, first_row, faulted_rows(first_row));
  if (out_.path != KernelPath::kStaging) {
    return;
  }
  const std::span<const std::byte> frames{out(layout_.frames_out), out_.frames_bytes};
  for (std::uint32_t row = first_row; row < first_row + batch.size(); ++row) {
    if (!faulted(row)) {
      out_.body_copy->moves_out(row, frames, moves);
    }
  }
}

void SharedCopy::apply(std::vector<hostcopy::Move>& moves) {
  for (std::size_t i = 0; i < rows_->units(); ++i) {
    apply_rows(rows_->decided(i), rows_->first_decided(i), moves);
    apply_rows(rows_->passed(i), rows_->first_passed(i), moves);
  }
}

}  // namespace catena::copy
