// SPDX-License-Identifier: Apache-2.0
#include "kernel/shared_launch.hpp"

#include "kernel/transfer_params.hpp"

#include <catena/kernel/shared_layout.hpp>

#include "kernel/launch_support.hpp"
#include "kernel/rewritten.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace catena::kernel {

using copy::StagingExtent;
namespace {

constexpr std::size_t kUploadBlockBytes = sizeof(UploadBlock);
/// Commands are recorded for these many rows at least, and for twice as many, and so on: work-items without a row end
/// at once.
constexpr std::uint32_t kMinRecordedRows = 64;
/// The kernel that moves in also uploads the launch buffer where it has no more work-items than this: one launch less
/// is a shorter path, but its work-items ask the host's memory for the same slot numbers again and again.
constexpr std::uint32_t kMaxFusedUploadItems = 8192;

u32 blocks_of(std::size_t bytes) { return static_cast<u32>(round_up(bytes, kUploadBlockBytes) / kUploadBlockBytes); }

void add_slots(std::uint32_t first, std::uint32_t slots, std::vector<copy::SlotRun>& runs) {
  if (runs.empty() || first != runs.back().first + runs.back().slots) {
    runs.push_back({first, 0});
  }
  runs.back().slots += slots;
}

}  // namespace

SharedLaunch::SharedLaunch(DeviceNf& nf, std::uint32_t max_packets)
    : Launch(nf, max_packets),
      columns_in_(in_columns(nf.plan())),
      columns_out_(out_columns(nf.plan()), nf.plan().shared->to_host) {
  LaunchPlan const& plan = nf.plan();
  SharedStep const& step = *plan.shared;
  const auto header_fields_mapped = [](packet::FieldSet moved, TransferMethod method) {
    return method == TransferMethod::kGather && !packet::has_frame(moved) && (moved & packet::kFrameFields) != 0;
  };
  in_.moved = step.to_device;
  in_.columns = in_columns(plan);
  in_.has_kernel = in_.columns != 0 || header_fields_mapped(step.to_device, step.columns_in);
  out_.moved = step.to_host;
  out_.columns = out_columns(plan);
  out_.has_kernel = out_.columns != 0 || header_fields_mapped(step.to_host, step.columns_out);
  for (Side* side : {&in_, &out_}) {
    side->body = frames_of(side->moved);
    if (side->body != Frames::kNone) {
      const bool in = side == &in_;
      side->mover.emplace(in ? step.body_in : step.body_out, in ? Direction::kToDevice : Direction::kToHost,
                          side->body == Frames::kPayload, nf.shared_->mapped() != nullptr);
    }
  }
}

SharedLaunch::Layout SharedLaunch::layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const {
  LaunchPlan const& plan = nf_->plan();
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

Status SharedLaunch::allocate() {
  const auto max_frames_bytes = [this](Side const& side) {
    return side.mover ? side.mover->max_staging_bytes(capacity()) : 0;
  };
  const Layout most = layout_for(capacity(), max_frames_bytes(in_), max_frames_bytes(out_));
  CATENA_RETURN_IF_ERROR(allocate_memory(round_up(most.end, kUploadBlockBytes),
                                         round_up(most.out_columns, kUploadBlockBytes),
                                         round_up(most.end - most.out, kUploadBlockBytes),
                                         std::size_t{capacity()} * packet::kSlotBytes * nf_->spec().spill_factor));
  slots_.reserve(capacity());
  layout_ = layout_for(0, 0, 0);
  return absl::OkStatus();
}

void SharedLaunch::begin() {
  Launch::begin();
  passthrough_.clear();
  passthrough_count_ = 0;
  units_.clear();
}

void SharedLaunch::add_unit(packet::Batch const& unit) { units_.push_back(unit); }

void SharedLaunch::add_passthrough(packet::Batch const& batch) {
  if (batch.size() > 0) {
    passthrough_.push_back({batch, {}, passthrough_count_});
    passthrough_count_ += batch.size();
  }
}

void SharedLaunch::collect_rows() {
  slots_.clear();
  for (auto const* group : {&staged_, &passthrough_}) {
    for (Staged const& staged : *group) {
      slots_.insert(slots_.end(), staged.batch.slots().begin(), staged.batch.slots().end());
    }
  }
}

void SharedLaunch::find_own_slots() {
  own_.clear();
  const auto needs_contiguity = [](Side const& side) { return side.mover && side.mover->needs_contiguity(); };
  if (!needs_contiguity(in_) && !needs_contiguity(out_)) {
    return;
  }
  for (packet::Batch const& unit : units_) {
    if (unit.size() > 0 && unit.is_run()) {
      add_slots(unit.slots()[0], unit.size(), own_);
      continue;
    }
    for (const std::uint32_t slot : unit.slots()) {
      add_slots(slot, 1, own_);
    }
  }
  if (units_.empty()) {
    std::vector<std::uint32_t> sorted = slots_;
    std::sort(sorted.begin(), sorted.end());
    for (const std::uint32_t slot : sorted) {
      add_slots(slot, 1, own_);
    }
  }
}

void SharedLaunch::choose_method(Side& side) {
  side.body_copy = nullptr;
  side.method = TransferMethod::kStrided;
  side.frames_bytes = 0;
  if (!side.mover || slots_.empty()) {
    return;
  }
  KernelSpec const& spec = nf_->spec();
  packet::MetaColumns const& meta = (staged_.empty() ? passthrough_ : staged_).front().batch.meta();
  side.bodies = {nf_->shared_->pool(),          &nf_->shared_->buffer(), &meta,        slots_, own_,
                 side.body == Frames::kPayload, spec.headroom,           spec.tailroom};
  side.body_copy = &side.mover->choose(side.bodies, side.frames_bytes);
  side.method = side.body_copy->method();
}

void SharedLaunch::write_head() {
  const LaunchHeader head{rows_in_all(), count_, blocks_of(bytes_in()), 0};
  std::memcpy(staging_->bytes().data(), &head, sizeof head);
}

void SharedLaunch::fill_staging() {
  write_head();
  std::byte* host = staging_->bytes().data();
  std::byte* columns = host + layout_.columns;
  LaunchPlan const& plan = nf_->plan();
  for (Staged const& staged : passthrough_) {
    columns_in_.gather(staged.batch, columns, layout_.padded, count_ + staged.first_row);
  }
  for (Staged const& staged : staged_) {
    columns_in_.gather(staged.batch, columns, layout_.padded, staged.first_row);
    if (!staged.aux.empty()) {
      std::memcpy(host + layout_.aux + std::size_t{staged.first_row} * plan.aux_bytes, staged.aux.data(),
                  staged.aux.size());
    }
  }
  std::memcpy(host + layout_.slots, slots_.data(), slots_.size() * sizeof(std::uint32_t));
  const auto write_extents = [host](Side const& side, std::size_t at) {
    if (const auto extents =
            side.body_copy == nullptr ? std::span<const copy::StagingExtent>() : side.body_copy->staging_extents();
        !extents.empty()) {
      std::memcpy(host + at, extents.data(), extents.size_bytes());
    }
  };
  write_extents(in_, layout_.extents_in);
  write_extents(out_, layout_.extents_out);
  if (in_.body_copy != nullptr) {
    in_.body_copy->write_staging({host + layout_.frames_in, in_.frames_bytes});
  }
  std::byte* faults = writes_to_host() ? out(layout_.out) : host + layout_.out;
  std::memset(faults, 0, layout_.out_columns - layout_.out);
}

bool SharedLaunch::needs_kernel(Side const& side) const {
  return is_warming_up_ || side.has_kernel || side.method != TransferMethod::kStrided;
}

std::uint32_t SharedLaunch::lane_bits(Side const& side, std::uint32_t max_rows) {
  if (side.body == Frames::kNone) {
    return 0;
  }
  return max_rows <= copy::kFewPackets ? kTransferLaneBitsOfFew : kTransferLaneBits;
}

bool SharedLaunch::fused_upload(std::uint32_t max_rows) const {
  const std::uint32_t bits = lane_bits(in_, max_rows);
  return reads_host_memory() && needs_kernel(in_) && (bits == 0 || max_rows << bits <= kMaxFusedUploadItems);
}

std::uint32_t SharedLaunch::max_upload_blocks(std::uint32_t rows) const {
  return blocks_of(layout_for(rows, in_.frames_bytes, out_.frames_bytes).out_columns);
}

Status SharedLaunch::launch_transfer(device::CommandRecorder& target, Side const& side, std::uint32_t max_rows,
                                     bool fused_upload) {
  const bool in = &side == &in_;
  TransferParams params{};
  params.slots_offset = sizeof(LaunchHeader);
  params.slots_row_bytes = packet::columns_size(in_.columns) + nf_->plan().aux_bytes;
  params.slots = nf_->shared_->slots();
  params.extents_offset = in ? layout_.extents_in : layout_.extents_out;
  params.frames_offset = in ? layout_.frames_in : layout_.frames_out;
  params.frames_bytes = side.frames_bytes;
  params.flags_offset = offset_in_out_buffer(layout_.out) + sizeof(FaultReport);
  params.body = side.method;
  params.fused_upload = fused_upload ? 1 : 0;
  params.lane_bits = lane_bits(side, max_rows);
  const std::array<device::KernelArgument, 5> arguments{batch_.get(), fused_upload ? staging_->window() : &out_buffer(),
                                                        &nf_->shared_->buffer(), nf_->shared_->mapped(),
                                                        std::as_bytes(std::span(&params, 1))};
  const std::uint64_t blocks = fused_upload ? max_upload_blocks(max_rows) : 0;
  // there may be more of a few packets than of many
  const std::uint64_t of_few =
      is_warming_up_ ? std::uint64_t{std::min(max_rows, copy::kFewPackets)} << kTransferLaneBitsOfFew : 0;
  const std::uint64_t work_items =
      std::max({std::uint64_t{max_rows} << params.lane_bits, blocks, of_few, std::uint64_t{1}});
  const device::LaunchShape shape{static_cast<std::uint32_t>((work_items + kTransferGroup - 1) / kTransferGroup),
                                  kTransferGroup, 0};
  return target.launch(in ? *nf_->move_in_ : *nf_->move_out_, shape, arguments);
}

Status SharedLaunch::launch_upload(device::CommandRecorder& target, std::uint32_t max_rows) {
  const std::array<device::KernelArgument, 2> arguments{batch_.get(), staging_->window()};
  const std::uint32_t max_blocks = max_upload_blocks(max_rows);
  return target.launch(*nf_->upload_, {(max_blocks + kTransferGroup - 1) / kTransferGroup, kTransferGroup, 0},
                       arguments);
}

Status SharedLaunch::launch_in(device::CommandRecorder& target, std::uint32_t max_rows) {
  const bool is_fused = fused_upload(max_rows);
  if (reads_host_memory() && (!is_fused || is_warming_up_)) {
    CATENA_RETURN_IF_ERROR(launch_upload(target, max_rows));
  }
  return needs_kernel(in_) ? launch_transfer(target, in_, max_rows, is_fused) : absl::OkStatus();
}

Status SharedLaunch::launch_nf(device::CommandRecorder& target, std::uint32_t max_rows) {
  LaunchParams params{};
  params.batch_offset = sizeof(LaunchHeader);
  params.out_offset = offset_in_out_buffer(layout_.out);
  params.spill_row_bytes = std::uint64_t{packet::kSlotBytes} * nf_->spec().spill_factor;
  params.slots = nf_->shared_->slots();
  return launch_nf_kernel(target, out_buffer(), params, max_rows);
}

Status SharedLaunch::launch_out(device::CommandRecorder& target, std::uint32_t max_rows) {
  return needs_kernel(out_) ? launch_transfer(target, out_, max_rows, false) : absl::OkStatus();
}

bool SharedLaunch::can_repeat() const {
  return reads_host_memory() && writes_to_host() && in_.method != TransferMethod::kStaged &&
         out_.method != TransferMethod::kStaged;
}

Result<SharedLaunch::Kernels const*> SharedLaunch::kernels_for(std::uint32_t max_rows) {
  const KernelsKey key{max_rows, in_.method, out_.method, is_traced()};
  const auto known = std::find_if(kernels_.begin(), kernels_.end(), [&](Kernels const& k) { return k.key == key; });
  if (known != kernels_.end()) {
    return &*known;
  }
  Kernels kernels{key};
  CATENA_ASSIGN_OR_RETURN(auto commands, nf_->device().create_command_buffer());
  CATENA_RETURN_IF_ERROR(launch_in(*commands, max_rows));
  if (key.is_traced) {
    CATENA_ASSIGN_OR_RETURN(kernels.moved_in, commands->record_timestamp());
  }
  CATENA_RETURN_IF_ERROR(launch_nf(*commands, max_rows));
  if (key.is_traced) {
    CATENA_ASSIGN_OR_RETURN(kernels.computed, commands->record_timestamp());
  }
  CATENA_RETURN_IF_ERROR(launch_out(*commands, max_rows));
  CATENA_RETURN_IF_ERROR(stream_->finalize(*commands));
  kernels.commands = commands.get();
  command_buffers_.push_back(std::move(commands));
  kernels_.push_back(kernels);
  return &kernels_.back();
}

Status SharedLaunch::enqueue_kernel() {
  event_.reset();
  return launch_nf(*stream_, count_);
}

Status SharedLaunch::enqueue_warm_up() {
  write_head();
  if (!reads_host_memory()) {
    CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  CATENA_RETURN_IF_ERROR(launch_in(*stream_, capacity()));
  CATENA_RETURN_IF_ERROR(launch_nf(*stream_, capacity()));
  return launch_out(*stream_, capacity());
}

/// Command buffers for batches of every size whose bodies take the default method; others are recorded when needed.
Status SharedLaunch::record_commands() {
  std::uint32_t max_rows = 0;
  for (std::uint32_t rows = kMinRecordedRows; max_rows < capacity(); rows *= 2) {
    max_rows = std::min(rows, capacity());
    for (Side* side : {&in_, &out_}) {
      side->method = side->mover ? side->mover->default_method(max_rows) : TransferMethod::kStrided;
    }
    if (can_repeat()) {
      CATENA_RETURN_IF_ERROR(kernels_for(max_rows).status());
    }
  }
  return absl::OkStatus();
}

Status SharedLaunch::submit() {
  collect_rows();
  find_own_slots();
  choose_method(in_);
  choose_method(out_);
  layout_ = layout_for(rows_in_all(), in_.frames_bytes, out_.frames_bytes);
  CATENA_RETURN_IF_ERROR(check_fits(layout_.end, bytes_in(), layout_.end - layout_.out));
  fill_staging();

  CATENA_RETURN_IF_ERROR(record_timestamp(kBegin));
  if (!reads_host_memory()) {
    CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  for (auto const* group : {&staged_, &passthrough_}) {
    for (Staged const& staged : *group) {
      CATENA_ASSIGN_OR_RETURN(const std::uint64_t bytes, enqueue_rewritten(*stream_, *nf_->shared_, staged.batch));
      transfers_.bytes_to_device += bytes;
    }
  }
  if (in_.body_copy != nullptr) {
    CATENA_RETURN_IF_ERROR(in_.body_copy->enqueue(*stream_));
  }
  if (can_repeat()) {
    const std::uint32_t max_rows = std::min(std::max(std::bit_ceil(rows_in_all()), kMinRecordedRows), capacity());
    CATENA_ASSIGN_OR_RETURN(Kernels const* const kernels, kernels_for(max_rows));
    kernel_ran_ = true;
    CATENA_RETURN_IF_ERROR(stream_->enqueue(*kernels->commands));
    use_timestamp(kMovedIn, kernels->moved_in);
    use_timestamp(kComputed, kernels->computed);
  } else {
    CATENA_RETURN_IF_ERROR(launch_in(*stream_, rows_in_all()));
    CATENA_RETURN_IF_ERROR(record_timestamp(kMovedIn));
    kernel_ran_ = true;
    CATENA_RETURN_IF_ERROR(launch_nf(*stream_, count_));
    CATENA_RETURN_IF_ERROR(record_timestamp(kComputed));
    CATENA_RETURN_IF_ERROR(launch_out(*stream_, rows_in_all()));
  }
  if (out_.body_copy != nullptr) {
    CATENA_RETURN_IF_ERROR(out_.body_copy->enqueue(*stream_));
  }
  if (!writes_to_host()) {
    CATENA_RETURN_IF_ERROR(
        stream_->copy_to_host(staging_out_->bytes().first(layout_.end - layout_.out), *batch_, layout_.out));
  }
  CATENA_RETURN_IF_ERROR(record_timestamp(kMovedBack));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  faults_ = out(layout_.out);
  results_ = out(layout_.results);
  count_transfers(bytes_in(), layout_.end - layout_.out);
  return stream_->flush();
}

void SharedLaunch::count_transfers(std::size_t staged_in, std::size_t staged_out) {
  const auto beside_staging = [this](Side const& side) {
    const packet::FieldSet mapped =
        packet::has_frame(side.moved) ? 0 : side.moved & packet::kFrameFields & ~side.columns;
    return (side.body_copy == nullptr ? 0 : side.body_copy->bytes()) +
           std::uint64_t{rows_in_all()} * packet::columns_size(mapped);
  };
  transfers_.packets += rows_in_all();
  transfers_.bytes_to_device += staged_in + beside_staging(in_);
  transfers_.bytes_to_host += staged_out + beside_staging(out_);
}

Extent SharedLaunch::spill_extent(std::uint32_t row) const {
  // where a row's area starts does not depend on its payload: the host may not know that yet at submit()
  const auto behind =
      std::upper_bound(staged_.begin(), staged_.end(), row,
                       [](std::uint32_t wanted, Staged const& staged) { return wanted < staged.first_row; });
  packet::MetaColumns const& meta = std::prev(behind)->batch.meta();
  return {row * packet::kSlotBytes, meta.layers[slots_[row]].payload_length, 0};
}

const std::byte* SharedLaunch::out_column(std::uint32_t field) const {
  const std::uint32_t prefix = packet::column_prefix(out_.columns, field);
  return prefix == packet::kNoColumn ? nullptr : out(layout_.out_columns + std::size_t{layout_.padded} * prefix);
}

/// Marks rows whose frame bounds, as the kernel left them, are not in the frame's staging extent.
void SharedLaunch::check_frame_bounds(packet::Batch const& batch, std::uint32_t first_row) {
  KernelSpec const& spec = nf_->spec();
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

void SharedLaunch::apply_rows(packet::Batch const& batch, std::uint32_t first_row) {
  const bool moves_frame_bounds = (nf_->plan().writes & packet::fields(packet::kMetaOffset, packet::kMetaLength)) != 0;
  if (moves_frame_bounds && first_row < count_) {
    check_frame_bounds(batch, first_row);
  }
  // what a faulted row says about its packet is not believed
  columns_out_.scatter(batch, out(layout_.out_columns), layout_.padded, first_row, faulted_rows(first_row));
  if (out_.body_copy == nullptr || out_.body_copy->method() != TransferMethod::kStaged) {
    return;
  }
  const std::span<const std::byte> frames{out(layout_.frames_out), out_.frames_bytes};
  for (std::uint32_t row = first_row; row < first_row + batch.size(); ++row) {
    if (!faulted(row)) {
      out_.body_copy->read_staging(row, frames);
    }
  }
}

void SharedLaunch::apply() {
  for (Staged const& staged : staged_) {
    apply_rows(staged.batch, staged.first_row);
  }
  for (Staged const& staged : passthrough_) {
    apply_rows(staged.batch, count_ + staged.first_row);
  }
}

}  // namespace catena::kernel
