// SPDX-License-Identifier: Apache-2.0
#include "kernel/direct_launch.hpp"

#include <catena/kernel/launch_params.hpp>

#include "kernel/launch_support.hpp"

#include <cstring>

namespace catena::kernel {

DirectLaunch::DirectLaunch(DeviceNf& nf, std::uint32_t max_packets)
    : Launch(nf, max_packets),
      frames_(frames_of(nf.plan().reads | nf.plan().writes)),
      in_(in_columns(nf.plan())),
      out_(out_columns(nf.plan())),
      frames_written_(frames_of(nf.plan().writes) != Frames::kNone),
      columns_in_(in_),
      columns_out_(out_, frames_written_ && frames_ == Frames::kFrame
                             ? out_ & ~packet::fields(packet::kMetaLength, packet::kMetaOffset)
                             : out_) {}

DirectLaunch::Layout DirectLaunch::layout_for(std::uint32_t count, std::size_t frame_bytes) const {
  LaunchPlan const& plan = nf_->plan();
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

Status DirectLaunch::allocate() {
  KernelSpec const& spec = nf_->spec();
  const std::size_t each =
      round_up(std::size_t{spec.headroom} + kFrameShift + packet::kSlotBytes + spec.tailroom, kFrameAlign);
  const std::size_t frame_bytes = frames_ == Frames::kNone ? 0 : capacity() * each;
  const Layout most = layout_for(capacity(), frame_bytes);
  CATENA_RETURN_IF_ERROR(allocate_memory(most.end, most.out_columns,
                                         most.end - (frames_written_ ? most.frames : most.out),
                                         frame_bytes * spec.spill_factor));
  layout_ = layout_for(0, 0);
  return absl::OkStatus();
}

void DirectLaunch::place_frames() {
  KernelSpec const& spec = nf_->spec();
  extents_.clear();
  std::size_t frame_bytes = 0;
  if (frames_ != Frames::kNone) {
    const std::size_t shift = frames_ == Frames::kFrame ? kFrameShift : 0;
    for (Staged const& staged : staged_) {
      packet::MetaColumns const& meta = staged.batch.meta();
      for (const std::uint32_t slot : staged.batch.slots()) {
        const std::uint16_t length = frames_ == Frames::kFrame ? meta.length[slot] : meta.layers[slot].payload_length;
        extents_.push_back({static_cast<u32>(frame_bytes + spec.headroom + shift), length, 0});
        frame_bytes += round_up(spec.headroom + shift + length + spec.tailroom, kFrameAlign);
      }
    }
  }
  layout_ = layout_for(count_, frame_bytes);
}

void DirectLaunch::fill_staging() {
  std::byte* host = staging_->bytes().data();
  LaunchPlan const& plan = nf_->plan();
  for (Staged const& staged : staged_) {
    columns_in_.gather(staged.batch, host, layout_.padded, staged.first_row);
    if (!staged.aux.empty()) {
      std::memcpy(host + layout_.aux + std::size_t{staged.first_row} * plan.aux_bytes, staged.aux.data(),
                  staged.aux.size());
    }
  }
  if (frames_ != Frames::kNone) {
    std::memcpy(host + layout_.extents, extents_.data(), extents_.size() * sizeof(Extent));
    for (Staged const& staged : staged_) {
      packet::MetaColumns const& meta = staged.batch.meta();
      std::uint32_t row = staged.first_row;
      for (const std::uint32_t slot : staged.batch.slots()) {
        const std::uint32_t skip = frames_ == Frames::kFrame ? 0U : meta.layers[slot].payload;
        const std::uint8_t* from =
            staged.batch.memory() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] + skip;
        std::memcpy(host + layout_.frames + extents_[row].begin, from, extents_[row].length);
        ++row;
      }
    }
  }
  std::memset(host + layout_.out, 0, layout_.out_columns - layout_.out);
}

Status DirectLaunch::enqueue_kernel() {
  LaunchParams params{};
  params.padded = layout_.padded;
  params.frames_offset = layout_.frames;
  params.frames_bytes = layout_.out - layout_.frames;
  params.out_offset = layout_.out;
  event_.reset();
  return launch_nf_kernel(*stream_, *batch_, params, count_);
}

Status DirectLaunch::submit() {
  place_frames();
  const std::size_t back_from = frames_written_ ? layout_.frames : layout_.out;
  CATENA_RETURN_IF_ERROR(check_fits(layout_.end, layout_.out_columns, layout_.end - back_from));
  fill_staging();
  const std::span<const std::byte> in = staging_->bytes().first(layout_.out_columns);
  CATENA_RETURN_IF_ERROR(record_timestamp(kBegin));
  CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, in));
  CATENA_RETURN_IF_ERROR(record_timestamp(kMovedIn));
  kernel_ran_ = true;
  CATENA_RETURN_IF_ERROR(enqueue_kernel());
  CATENA_RETURN_IF_ERROR(record_timestamp(kComputed));
  CATENA_RETURN_IF_ERROR(
      stream_->copy_to_host(staging_out_->bytes().first(layout_.end - back_from), *batch_, back_from));
  CATENA_RETURN_IF_ERROR(record_timestamp(kMovedBack));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  faults_ = out(layout_.out);
  results_ = out(layout_.results);
  transfers_.packets += count_;
  transfers_.bytes_to_device += in.size();
  transfers_.bytes_to_host += layout_.end - back_from;
  return stream_->flush();
}

std::byte* DirectLaunch::out(std::size_t buffer_offset) const {
  return staging_out_->bytes().data() + (buffer_offset - (frames_written_ ? layout_.frames : layout_.out));
}

void DirectLaunch::scatter_bytes(packet::Batch const& batch, std::uint32_t first_row) {
  KernelSpec const& spec = nf_->spec();
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
    std::uint8_t* slot_bytes = batch.memory() + std::size_t{slot} * packet::kSlotBytes;
    if (faulted(row)) {
      ++row;
      continue;
    }
    if (!whole) {
      std::memcpy(slot_bytes + meta.offset[slot] + meta.layers[slot].payload, out(layout_.frames + extent.begin),
                  extent.length);
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
      std::memcpy(slot_bytes + offset, out(layout_.frames + extent.begin + offset - old_offset), end - offset);
      batch[row - first_row].set_extent(offset, lengths[row]);
    } else {
      mark_faulted(row, offset);
    }
    ++row;
  }
}

Extent DirectLaunch::spill_extent(std::uint32_t row) const { return extents_.empty() ? Extent{} : extents_[row]; }

void DirectLaunch::apply() {
  for (Staged const& staged : staged_) {
    // what a faulted row says about its packet is not believed
    columns_out_.scatter(staged.batch, out(layout_.out_columns), layout_.padded, staged.first_row,
                         faulted_rows(staged.first_row));
    if (frames_written_) {
      scatter_bytes(staged.batch, staged.first_row);
    }
  }
}

}  // namespace catena::kernel
