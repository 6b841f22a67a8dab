// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/direct_copy.hpp"

#include <catena/kernel/launch_params.hpp>

#include "gpu/copy/layout.hpp"

#include <cstring>

namespace catena::copy {

using kernel::Extent;
using kernel::FaultReport;
using kernel::kFrameShift;

DirectCopy::DirectCopy(CopyRequest const& request, std::uint32_t max_packets)
    : LaunchCopy(request, max_packets),
      frames_(frames_of(request.plan->reads | request.plan->writes)),
      in_(in_columns(*request.plan)),
      out_(out_columns(*request.plan)),
      frames_written_(frames_of(request.plan->writes) != Frames::kNone),
      columns_in_(in_),
      columns_out_(out_, frames_written_ && frames_ == Frames::kFrame
                             ? out_ & ~packet::fields(packet::kMetaLength, packet::kMetaOffset)
                             : out_) {}

DirectCopy::Layout DirectCopy::layout_for(std::uint32_t count, std::size_t frame_bytes) const {
  LaunchPlan const& plan = *request_.plan;
  Layout layout;
  layout.padded = static_cast<std::uint32_t>(round_up(count, kRowAlign));
  layout.aux = std::size_t{layout.padded} * packet::columns_size(in_);
  layout.extents = layout.aux + std::size_t{layout.padded} * plan.aux_bytes;
  layout.frames = round_up(
      layout.extents + (frames_ == Frames::kNone ? 0 : std::size_t{layout.padded} * sizeof(Extent)), kBufferAlign);
  layout.out = round_up(layout.frames + frame_bytes, kBufferAlign);
  layout.out_columns = layout.out + sizeof(FaultReport) + layout.padded;
  layout.results = layout.out_columns + std::size_t{layout.padded} * packet::columns_size(out_);
  layout.end = layout.results + std::size_t{layout.padded} * plan.result_bytes;
  return layout;
}

std::size_t DirectCopy::max_frame_bytes() const {
  kernel::KernelSpec const& spec = *request_.spec;
  const std::size_t each =
      round_up(std::size_t{spec.headroom} + kFrameShift + packet::kSlotBytes + spec.tailroom, kFrameAlign);
  return frames_ == Frames::kNone ? 0 : max_packets() * each;
}

Status DirectCopy::allocate(device::Stream& stream) {
  const Layout most = layout_for(max_packets(), max_frame_bytes());
  CATENA_RETURN_IF_ERROR(
      allocate_memory(stream, most.end, most.out_columns, most.end - (frames_written_ ? most.frames : most.out)));
  layout_ = layout_for(0, 0);
  return absl::OkStatus();
}

void DirectCopy::place_frames() {
  kernel::KernelSpec const& spec = *request_.spec;
  extents_.clear();
  std::size_t frame_bytes = 0;
  if (frames_ != Frames::kNone) {
    const std::size_t shift = frames_ == Frames::kFrame ? kFrameShift : 0;
    for (std::size_t i = 0; i < rows_->units(); ++i) {
      const packet::Batch batch = rows_->decided(i);
      packet::MetaColumns const& meta = batch.meta();
      for (const std::uint32_t slot : batch.slots()) {
        const std::uint16_t length = frames_ == Frames::kFrame ? meta.length[slot] : meta.layers[slot].payload_length;
        extents_.push_back({static_cast<u32>(frame_bytes + spec.headroom + shift), length, 0});
        frame_bytes += round_up(spec.headroom + shift + length + spec.tailroom, kFrameAlign);
      }
    }
  }
  layout_ = layout_for(rows_->decided(), frame_bytes);
}

void DirectCopy::fill_staging(std::span<const std::span<const std::byte>> aux, std::vector<hostcopy::Move>& moves) {
  std::byte* host = staging_->bytes().data();
  LaunchPlan const& plan = *request_.plan;
  for (std::size_t i = 0; i < rows_->units(); ++i) {
    columns_in_.gather(rows_->decided(i), host, layout_.padded, rows_->first_decided(i));
    if (!aux[i].empty()) {
      std::memcpy(host + layout_.aux + std::size_t{rows_->first_decided(i)} * plan.aux_bytes, aux[i].data(),
                  aux[i].size());
    }
  }
  if (frames_ != Frames::kNone) {
    std::memcpy(host + layout_.extents, extents_.data(), extents_.size() * sizeof(Extent));
    for (std::size_t i = 0; i < rows_->units(); ++i) {
      const packet::Batch batch = rows_->decided(i);
      packet::MetaColumns const& meta = batch.meta();
      std::uint32_t row = rows_->first_decided(i);
      for (const std::uint32_t slot : batch.slots()) {
        const std::uint32_t skip = frames_ == Frames::kFrame ? 0U : meta.layers[slot].payload;
        const std::uint8_t* from = batch.memory() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] + skip;
        moves.push_back({reinterpret_cast<const std::byte*>(from), host + layout_.frames + extents_[row].begin,
                         extents_[row].length});
        ++row;
      }
    }
  }
  std::memset(host + layout_.out, 0, layout_.out_columns - layout_.out);
}

KernelArguments DirectCopy::kernel_arguments() const {
  kernel::LaunchParams params{};
  params.padded = layout_.padded;
  params.frames_offset = layout_.frames;
  params.frames_bytes = layout_.out - layout_.frames;
  params.out_offset = layout_.out;
  return {batch_.get(), batch_.get(), params};
}

Status DirectCopy::prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                           std::vector<hostcopy::Move>& moves) {
  rows_ = &rows;
  place_frames();
  CATENA_RETURN_IF_ERROR(check_fits(layout_.end, layout_.out_columns, layout_.end - back_from()));
  fill_staging(aux, moves);
  return absl::OkStatus();
}

Status DirectCopy::enqueue_in(device::Stream& stream) {
  return stream.copy_to_device(*batch_, 0, staging_->bytes().first(layout_.out_columns));
}

Status DirectCopy::enqueue_out(device::Stream& stream) {
  CATENA_RETURN_IF_ERROR(
      stream.copy_to_host(staging_out_->bytes().first(layout_.end - back_from()), *batch_, back_from()));
  faults_ = out(layout_.out);
  results_ = out(layout_.results);
  transfers_.packets += rows_->decided();
  transfers_.bytes_to_device += layout_.out_columns;
  transfers_.bytes_to_host += layout_.end - back_from();
  return absl::OkStatus();
}

void DirectCopy::scatter_bytes(packet::Batch const& batch, std::uint32_t first_row,
                               std::vector<hostcopy::Move>& moves) {
  kernel::KernelSpec const& spec = *request_.spec;
  packet::MetaColumns const& meta = batch.meta();
  const bool whole = frames_ == Frames::kFrame;
  const auto* lengths = reinterpret_cast<const std::uint16_t*>(
      whole ? out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_, packet::kMetaLength))
            : nullptr);
  const auto* offsets = reinterpret_cast<const std::uint16_t*>(
      whole ? out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_, packet::kMetaOffset))
            : nullptr);
  std::uint32_t row = first_row;
  for (const std::uint32_t slot : batch.slots()) {
    Extent const& extent = extents_[row];
    auto* slot_bytes = reinterpret_cast<std::byte*>(batch.memory() + std::size_t{slot} * packet::kSlotBytes);
    if (faulted(row)) {
      ++row;
      continue;
    }
    if (!whole) {
      moves.push_back({out(layout_.frames + extent.begin), slot_bytes + meta.offset[slot] + meta.layers[slot].payload,
                       extent.length});
      ++row;
      continue;
    }
    const std::uint32_t offset = offsets[row];
    const std::uint32_t end = offset + lengths[row];
    const std::uint32_t old_offset = meta.offset[slot];
    const bool inside = offset + spec.headroom >= old_offset && end >= offset &&
                        end <= old_offset + extent.length + spec.tailroom && end <= packet::kSlotBytes &&
                        lengths[row] >= packet::kEthernetBytes;
    if (inside) {
      moves.push_back({out(layout_.frames + extent.begin + offset - old_offset), slot_bytes + offset, end - offset});
      batch[row - first_row].set_extent(offset, lengths[row]);
    } else {
      mark_faulted(row, offset);
    }
    ++row;
  }
}

Extent DirectCopy::spill_extent(std::uint32_t row) const { return extents_.empty() ? Extent{} : extents_[row]; }

void DirectCopy::apply(std::vector<hostcopy::Move>& moves) {
  for (std::size_t i = 0; i < rows_->units(); ++i) {
    const packet::Batch batch = rows_->decided(i);
    const std::uint32_t first_row = rows_->first_decided(i);
    // what a faulted row says about its packet is not believed
    columns_out_.scatter(batch, out(layout_.out_columns), layout_.padded, first_row, faulted_rows(first_row));
    if (frames_written_) {
      scatter_bytes(batch, first_row, moves);
    }
  }
}

}  // namespace catena::copy
