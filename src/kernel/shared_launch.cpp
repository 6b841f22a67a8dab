// SPDX-License-Identifier: Apache-2.0
#include "kernel/shared_launch.hpp"

#include <catena/kernel/shared_layout.hpp>

#include "kernel/launch_support.hpp"
#include "kernel/rewritten.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace catena::kernel {
namespace {

constexpr std::size_t kRegionBlock = sizeof(RegionBlock);
/// Lists are made for these many rows at least, and for twice as many, and so on: work-items without a row end at once.
constexpr std::uint32_t kLeastListRows = 64;
/// The kernel that moves in also brings the region, where it has no more work-items than this: one launch less is a
/// shorter way, but its work-items ask the host's memory for the same slot numbers again and again.
constexpr std::uint32_t kMostBringing = 8192;

/// What the transfer kernel has to do with bodies that go by `way`.
BodyRoute route_of(Route way) {
  switch (way) {
    case Route::kMapped:
      return kBodyMapped;
    case Route::kStaged:
      return kBodyStaged;
    default:
      return kNoBody;
  }
}

u32 blocks_of(std::size_t bytes) { return static_cast<u32>(round_up(bytes, kRegionBlock) / kRegionBlock); }

void add_slots(std::uint32_t first, std::uint32_t slots, std::vector<copy::SlotRun>& runs) {
  if (runs.empty() || first != runs.back().first + runs.back().slots) {
    runs.push_back({first, 0});
  }
  runs.back().slots += slots;
}

}  // namespace

SharedLaunch::SharedLaunch(DeviceNf& nf, std::uint32_t max_packets)
    : Launch(nf, max_packets),
      columns_in_(in_columns(nf.spec())),
      columns_out_(out_columns(nf.spec()), nf.spec().shared->to_host) {
  ProgramSpec const& spec = nf.spec();
  SharedStep const& step = *spec.shared;
  const auto header_fields_mapped = [](packet::FieldSet moved, Route route) {
    return route == Route::kMapped && !packet::has_frame(moved) && (moved & packet::kFrameFields) != 0;
  };
  in_.moved = step.to_device;
  in_.columns = in_columns(spec);
  in_.has_kernel = in_.columns != 0 || header_fields_mapped(step.to_device, step.columns_in);
  out_.moved = step.to_host;
  out_.columns = out_columns(spec);
  out_.has_kernel = out_.columns != 0 || header_fields_mapped(step.to_host, step.columns_out);
  for (Side* side : {&in_, &out_}) {
    side->body = frames_of(side->moved);
    if (side->body != Frames::kNone) {
      const bool in = side == &in_;
      side->mover.emplace(in ? step.body_in : step.body_out, in ? copy::Way::kToDevice : copy::Way::kToHost,
                          side->body == Frames::kPayload, nf.shared_->mapped() != nullptr);
    }
  }
}

SharedLaunch::Layout SharedLaunch::layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const {
  ProgramSpec const& spec = nf_->spec();
  Layout layout;
  layout.padded = padded_rows(rows);
  const std::size_t padded = layout.padded;
  layout.columns = sizeof(RegionHead);
  layout.aux = layout.columns + padded * packet::columns_size(in_.columns);
  layout.slots = layout.aux + padded * spec.aux_bytes;
  layout.rooms_in = round_up(layout.slots + padded * sizeof(std::uint32_t), kRegionAlign);
  layout.rooms_out = layout.rooms_in + (frames_in > 0 ? padded * sizeof(Room) : 0);
  layout.frames_in = round_up(layout.rooms_out + (frames_out > 0 ? padded * sizeof(Room) : 0), kRegionAlign);
  layout.out = round_up(layout.frames_in + frames_in, kRegionAlign);
  layout.out_columns = layout.out + sizeof(FaultReport) + padded;
  layout.results = layout.out_columns + padded * packet::columns_size(out_.columns);
  layout.frames_out = round_up(layout.results + padded * spec.result_bytes, kRegionAlign);
  layout.end = layout.frames_out + frames_out;
  return layout;
}

Status SharedLaunch::allocate() {
  const auto most_frames_bytes = [this](Side const& side) {
    return side.mover ? side.mover->most_staging_bytes(capacity()) : 0;
  };
  const Layout most = layout_for(capacity(), most_frames_bytes(in_), most_frames_bytes(out_));
  CATENA_RETURN_IF_ERROR(
      allocate_memory(round_up(most.end, kRegionBlock), round_up(most.out_columns, kRegionBlock),
                      round_up(most.end - most.out, kRegionBlock),
                      std::size_t{capacity()} * packet::kSlotBytes * nf_->spec().policy.spill_factor));
  slots_.reserve(capacity());
  layout_ = layout_for(0, 0, 0);
  return absl::OkStatus();
}

void SharedLaunch::begin() {
  Launch::begin();
  undecided_.clear();
  undecided_count_ = 0;
  units_.clear();
}

void SharedLaunch::add_unit(packet::Batch const& unit) { units_.push_back(unit); }

void SharedLaunch::add_undecided(packet::Batch const& batch) {
  if (batch.size() > 0) {
    undecided_.push_back({batch, {}, undecided_count_});
    undecided_count_ += batch.size();
  }
}

void SharedLaunch::collect_rows() {
  slots_.clear();
  for (auto const* group : {&staged_, &undecided_}) {
    for (Staged const& staged : *group) {
      slots_.insert(slots_.end(), staged.batch.slots().begin(), staged.batch.slots().end());
    }
  }
}

void SharedLaunch::find_own_slots() {
  own_.clear();
  const auto looks_at_runs = [](Side const& side) { return side.mover && side.mover->looks_at_runs(); };
  if (!looks_at_runs(in_) && !looks_at_runs(out_)) {
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

void SharedLaunch::choose_way(Side& side) {
  side.way = nullptr;
  side.route = kNoBody;
  side.frames_bytes = 0;
  if (!side.mover || slots_.empty()) {
    return;
  }
  ProgramSpec const& spec = nf_->spec();
  packet::MetaColumns const& meta = (staged_.empty() ? undecided_ : staged_).front().batch.meta();
  side.bodies = {nf_->shared_->pool(),          &nf_->shared_->buffer(), &meta,        slots_, own_,
                 side.body == Frames::kPayload, spec.headroom,           spec.tailroom};
  side.way = &side.mover->choose(side.bodies, side.frames_bytes);
  side.route = route_of(side.way->route());
}

void SharedLaunch::write_head() {
  const RegionHead head{rows_in_all(), count_, blocks_of(bytes_in()), 0};
  std::memcpy(staging_->bytes().data(), &head, sizeof head);
}

void SharedLaunch::fill_staging() {
  write_head();
  std::byte* host = staging_->bytes().data();
  std::byte* columns = host + layout_.columns;
  ProgramSpec const& spec = nf_->spec();
  for (Staged const& staged : undecided_) {
    columns_in_.gather(staged.batch, columns, layout_.padded, count_ + staged.first_row);
  }
  for (Staged const& staged : staged_) {
    columns_in_.gather(staged.batch, columns, layout_.padded, staged.first_row);
    if (!staged.aux.empty()) {
      std::memcpy(host + layout_.aux + std::size_t{staged.first_row} * spec.aux_bytes, staged.aux.data(),
                  staged.aux.size());
    }
  }
  std::memcpy(host + layout_.slots, slots_.data(), slots_.size() * sizeof(std::uint32_t));
  const auto write_rooms = [host](Side const& side, std::size_t at) {
    if (const auto rooms = side.way == nullptr ? std::span<const copy::Room>() : side.way->rooms(); !rooms.empty()) {
      std::memcpy(host + at, rooms.data(), rooms.size_bytes());
    }
  };
  write_rooms(in_, layout_.rooms_in);
  write_rooms(out_, layout_.rooms_out);
  if (in_.way != nullptr) {
    in_.way->write_staging({host + layout_.frames_in, in_.frames_bytes});
  }
  std::byte* faults = writes_to_host() ? out(layout_.out) : host + layout_.out;
  std::memset(faults, 0, layout_.out_columns - layout_.out);
}

bool SharedLaunch::needs_kernel(Side const& side) const {
  return is_warming_up_ || side.has_kernel || side.route != kNoBody;
}

std::uint32_t SharedLaunch::lane_bits(Side const& side, std::uint32_t most_rows) {
  if (side.body == Frames::kNone) {
    return 0;
  }
  return most_rows <= copy::kFewPackets ? kTransferLaneBitsOfFew : kTransferLaneBits;
}

bool SharedLaunch::brings_region(std::uint32_t most_rows) const {
  const std::uint32_t bits = lane_bits(in_, most_rows);
  return region_is_mapped() && needs_kernel(in_) && (bits == 0 || most_rows << bits <= kMostBringing);
}

std::uint32_t SharedLaunch::most_region_blocks(std::uint32_t rows) const {
  return blocks_of(layout_for(rows, in_.frames_bytes, out_.frames_bytes).out_columns);
}

Status SharedLaunch::launch_transfer(device::LaunchTarget& target, Side const& side, std::uint32_t most_rows,
                                     bool brings_region) {
  const bool in = &side == &in_;
  TransferParams params{};
  params.slots_offset = sizeof(RegionHead);
  params.slots_row_bytes = packet::columns_size(in_.columns) + nf_->spec().aux_bytes;
  params.slots = nf_->shared_->slots();
  params.rooms_offset = in ? layout_.rooms_in : layout_.rooms_out;
  params.frames_offset = in ? layout_.frames_in : layout_.frames_out;
  params.frames_bytes = side.frames_bytes;
  params.flags_offset = in_out_buffer(layout_.out) + sizeof(FaultReport);
  params.body = side.route;
  params.brings_region = brings_region ? 1 : 0;
  params.lane_bits = lane_bits(side, most_rows);
  const std::array<device::KernelArgument, 5> arguments{
      batch_.get(), brings_region ? staging_->window() : &out_buffer(), &nf_->shared_->buffer(), nf_->shared_->mapped(),
      std::as_bytes(std::span(&params, 1))};
  const std::uint64_t blocks = brings_region ? most_region_blocks(most_rows) : 0;
  // there may be more of a few packets than of many
  const std::uint64_t of_few =
      is_warming_up_ ? std::uint64_t{std::min(most_rows, copy::kFewPackets)} << kTransferLaneBitsOfFew : 0;
  const std::uint64_t work_items =
      std::max({std::uint64_t{most_rows} << params.lane_bits, blocks, of_few, std::uint64_t{1}});
  const device::LaunchShape shape{static_cast<std::uint32_t>((work_items + kTransferGroup - 1) / kTransferGroup),
                                  kTransferGroup, 0};
  return target.launch(in ? *nf_->move_in_ : *nf_->move_out_, shape, arguments);
}

Status SharedLaunch::launch_region(device::LaunchTarget& target, std::uint32_t most_rows) {
  const std::array<device::KernelArgument, 2> arguments{batch_.get(), staging_->window()};
  const std::uint32_t most_blocks = most_region_blocks(most_rows);
  return target.launch(*nf_->copy_region_, {(most_blocks + kTransferGroup - 1) / kTransferGroup, kTransferGroup, 0},
                       arguments);
}

Status SharedLaunch::launch_in(device::LaunchTarget& target, std::uint32_t most_rows) {
  const bool brings = brings_region(most_rows);
  if (region_is_mapped() && (!brings || is_warming_up_)) {
    CATENA_RETURN_IF_ERROR(launch_region(target, most_rows));
  }
  return needs_kernel(in_) ? launch_transfer(target, in_, most_rows, brings) : absl::OkStatus();
}

Status SharedLaunch::launch_nf(device::LaunchTarget& target, std::uint32_t most_rows) {
  LaunchParams params{};
  params.batch_offset = sizeof(RegionHead);
  params.out_offset = in_out_buffer(layout_.out);
  params.spill_row_bytes = std::uint64_t{packet::kSlotBytes} * nf_->spec().policy.spill_factor;
  params.slots = nf_->shared_->slots();
  return launch_nf_kernel(target, out_buffer(), params, most_rows);
}

Status SharedLaunch::launch_out(device::LaunchTarget& target, std::uint32_t most_rows) {
  return needs_kernel(out_) ? launch_transfer(target, out_, most_rows, false) : absl::OkStatus();
}

bool SharedLaunch::can_repeat() const {
  return region_is_mapped() && writes_to_host() && in_.route != kBodyStaged && out_.route != kBodyStaged;
}

Result<device::LaunchList*> SharedLaunch::list_of_kernels(std::uint32_t most_rows) {
  const KernelsKey key{most_rows, in_.route, out_.route};
  const auto known = std::find_if(kernels_.begin(), kernels_.end(), [&](Kernels const& k) { return k.key == key; });
  if (known != kernels_.end()) {
    return known->list;
  }
  CATENA_ASSIGN_OR_RETURN(auto list, nf_->device().create_list());
  CATENA_RETURN_IF_ERROR(launch_in(*list, most_rows));
  CATENA_RETURN_IF_ERROR(launch_nf(*list, most_rows));
  CATENA_RETURN_IF_ERROR(launch_out(*list, most_rows));
  CATENA_RETURN_IF_ERROR(stream_->prepare(*list));
  kernels_.push_back({key, list.get()});
  lists_.push_back(std::move(list));
  return kernels_.back().list;
}

Status SharedLaunch::enqueue_kernel() {
  event_.reset();
  return launch_nf(*stream_, count_);
}

Status SharedLaunch::enqueue_warm_up() {
  write_head();
  if (!region_is_mapped()) {
    CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  CATENA_RETURN_IF_ERROR(launch_in(*stream_, capacity()));
  CATENA_RETURN_IF_ERROR(launch_nf(*stream_, capacity()));
  return launch_out(*stream_, capacity());
}

/// Lists for batches of every size whose bodies go the usual way; others are made when they are needed.
Status SharedLaunch::prepare_lists() {
  std::uint32_t most_rows = 0;
  for (std::uint32_t rows = kLeastListRows; most_rows < capacity(); rows *= 2) {
    most_rows = std::min(rows, capacity());
    for (Side* side : {&in_, &out_}) {
      side->route = side->mover ? route_of(side->mover->usual(most_rows)) : kNoBody;
    }
    if (can_repeat()) {
      CATENA_RETURN_IF_ERROR(list_of_kernels(most_rows).status());
    }
  }
  return absl::OkStatus();
}

Status SharedLaunch::submit() {
  collect_rows();
  find_own_slots();
  choose_way(in_);
  choose_way(out_);
  layout_ = layout_for(rows_in_all(), in_.frames_bytes, out_.frames_bytes);
  CATENA_RETURN_IF_ERROR(check_room(layout_.end, bytes_in(), layout_.end - layout_.out));
  fill_staging();

  CATENA_RETURN_IF_ERROR(mark(kBegin));
  if (!region_is_mapped()) {
    CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, staging_->bytes().first(bytes_in())));
  }
  for (auto const* group : {&staged_, &undecided_}) {
    for (Staged const& staged : *group) {
      CATENA_ASSIGN_OR_RETURN(const std::uint64_t bytes, enqueue_rewritten(*stream_, *nf_->shared_, staged.batch));
      transfers_.bytes_to_device += bytes;
    }
  }
  if (in_.way != nullptr) {
    CATENA_RETURN_IF_ERROR(in_.way->enqueue(*stream_));
  }
  if (can_repeat() && !is_traced()) {
    const std::uint32_t most_rows = std::min(std::max(std::bit_ceil(rows_in_all()), kLeastListRows), capacity());
    CATENA_ASSIGN_OR_RETURN(device::LaunchList* const list, list_of_kernels(most_rows));
    kernel_ran_ = true;
    CATENA_RETURN_IF_ERROR(stream_->run(*list));
  } else {
    CATENA_RETURN_IF_ERROR(launch_in(*stream_, rows_in_all()));
    CATENA_RETURN_IF_ERROR(mark(kMovedIn));
    kernel_ran_ = true;
    CATENA_RETURN_IF_ERROR(launch_nf(*stream_, count_));
    CATENA_RETURN_IF_ERROR(mark(kComputed));
    CATENA_RETURN_IF_ERROR(launch_out(*stream_, rows_in_all()));
  }
  if (out_.way != nullptr) {
    CATENA_RETURN_IF_ERROR(out_.way->enqueue(*stream_));
  }
  if (!writes_to_host()) {
    CATENA_RETURN_IF_ERROR(
        stream_->copy_to_host(staging_out_->bytes().first(layout_.end - layout_.out), *batch_, layout_.out));
  }
  CATENA_RETURN_IF_ERROR(mark(kMovedBack));
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
    return (side.way == nullptr ? 0 : side.way->bytes()) + std::uint64_t{rows_in_all()} * packet::columns_size(mapped);
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

/// Marks rows whose borders, as the kernel left them, do not lie in the room of the frame.
void SharedLaunch::check_borders(packet::Batch const& batch, std::uint32_t first_row) {
  ProgramSpec const& spec = nf_->spec();
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
  const bool moves_borders = (nf_->spec().writes & packet::fields(packet::kMetaOffset, packet::kMetaLength)) != 0;
  if (moves_borders && first_row < count_) {
    check_borders(batch, first_row);
  }
  // what a strayed kernel says about a packet is not believed
  columns_out_.scatter(batch, out(layout_.out_columns), layout_.padded, first_row, faulted_rows(first_row));
  if (out_.way == nullptr || out_.way->route() != Route::kStaged) {
    return;
  }
  const std::span<const std::byte> frames{out(layout_.frames_out), out_.frames_bytes};
  for (std::uint32_t row = first_row; row < first_row + batch.size(); ++row) {
    if (!faulted(row)) {
      out_.way->read_staging(row, frames);
    }
  }
}

void SharedLaunch::apply() {
  for (Staged const& staged : staged_) {
    apply_rows(staged.batch, staged.first_row);
  }
  for (Staged const& staged : undecided_) {
    apply_rows(staged.batch, count_ + staged.first_row);
  }
}

}  // namespace catena::kernel
