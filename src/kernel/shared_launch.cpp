// SPDX-License-Identifier: Apache-2.0
#include "kernel/shared_launch.hpp"

#include <catena/kernel/shared_layout.hpp>

#include "kernel/launch_support.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::kernel {
namespace {

constexpr std::uint32_t kTransferGroup = 64;
// a 2-D copy costs as much to start as a kernel: more of them than this, and the slots are too scattered
constexpr std::uint32_t kRunsAlways = 4;
constexpr std::uint32_t kRowsPerRun = 64;

/// Bytes of a packet in the frames region of its launch, at most.
constexpr std::size_t kMostRoom = packet::kSlotBytes + 2 * kFrameAlign;

}  // namespace

SharedLaunch::SharedLaunch(DeviceNf& nf, std::uint32_t max_packets) : Launch(nf, max_packets) {
  ProgramSpec const& spec = nf.spec();
  SharedStep const& step = *spec.shared;
  const auto header_fields_mapped = [](packet::FieldSet moved, Route route) {
    return route == Route::kMapped && !packet::has_frame(moved) && (moved & packet::kFrameFields) != 0;
  };
  in_.moved = step.to_device;
  in_.columns = in_columns(spec);
  in_.route = step.body_in;
  in_.has_kernel = in_.columns != 0 || header_fields_mapped(step.to_device, step.columns_in);
  out_.moved = step.to_host;
  out_.columns = out_columns(spec);
  out_.route = step.body_out;
  out_.has_kernel = out_.columns != 0 || header_fields_mapped(step.to_host, step.columns_out);
  for (Side* side : {&in_, &out_}) {
    side->body = frames_of(side->moved);
    if (side->route == Route::kStrided && side->body != Frames::kFrame) {
      side->route = nf.shared_->mapped() != nullptr ? Route::kMapped : Route::kStaged;
    }
  }
}

SharedLaunch::Layout SharedLaunch::layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const {
  ProgramSpec const& spec = nf_->spec();
  Layout layout;
  layout.padded = static_cast<std::uint32_t>(round_up(rows, kRowAlign));
  const std::size_t padded = layout.padded;
  layout.aux = padded * packet::columns_size(in_.columns);
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
  // a body that is planned as 2-D copies takes another route where slots are scattered
  const bool mapped = nf_->shared_->mapped() != nullptr;
  const auto frames_bytes = [&](Side const& side) {
    const bool may_be_staged = side.route == Route::kStaged || (side.route == Route::kStrided && !mapped);
    return side.body != Frames::kNone && may_be_staged ? capacity() * kMostRoom : 0;
  };
  const Layout most = layout_for(capacity(), frames_bytes(in_), frames_bytes(out_));
  CATENA_RETURN_IF_ERROR(
      allocate_memory(most.end, most.out_columns, most.end - most.out,
                      std::size_t{capacity()} * packet::kSlotBytes * nf_->spec().policy.spill_factor));
  layout_ = layout_for(0, 0, 0);
  return absl::OkStatus();
}

void SharedLaunch::begin() {
  Launch::begin();
  undecided_.clear();
  undecided_count_ = 0;
}

void SharedLaunch::add_undecided(packet::Batch const& batch) {
  undecided_.push_back({batch, {}, undecided_count_});
  undecided_count_ += batch.size();
}

void SharedLaunch::collect_rows() {
  slots_.clear();
  frames_.clear();
  payloads_.clear();
  extents_.clear();
  for (auto const* group : {&staged_, &undecided_}) {
    for (Staged const& staged : *group) {
      packet::MetaColumns const& meta = staged.batch.meta();
      for (const std::uint32_t slot : staged.batch.slots()) {
        const std::uint32_t offset = meta.offset[slot];
        const std::uint32_t payload = offset + meta.layers[slot].payload;
        // where the spill area of a row starts does not depend on its payload: the host may not know that yet
        extents_.push_back({static_cast<u32>(slots_.size() * packet::kSlotBytes), meta.layers[slot].payload_length, 0});
        slots_.push_back(slot);
        frames_.push_back({offset, offset + meta.length[slot]});
        payloads_.push_back({payload, payload + meta.layers[slot].payload_length});
      }
    }
  }
}

void SharedLaunch::choose_routes() {
  const bool wants_runs = (in_.body != Frames::kNone && in_.route == Route::kStrided) ||
                          (out_.body != Frames::kNone && out_.route == Route::kStrided);
  runs_.clear();
  bool scattered = false;
  if (wants_runs) {
    std::vector<std::uint32_t> order(slots_.size());
    for (std::uint32_t row = 0; row < order.size(); ++row) {
      order[row] = row;
    }
    if (!undecided_.empty()) {
      std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) { return slots_[a] < slots_[b]; });
    }
    for (const std::uint32_t row : order) {
      if (runs_.empty() || slots_[row] != runs_.back().first + runs_.back().slots) {
        runs_.push_back({slots_[row], 0, packet::kSlotBytes, 0});
      }
      Run& run = runs_.back();
      ++run.slots;
      run.begin = std::min(run.begin, frames_[row].begin);
      run.end = std::max(run.end, frames_[row].end);
    }
    scattered = runs_.size() > kRunsAlways + slots_.size() / kRowsPerRun;
  }
  for (Side* side : {&in_, &out_}) {
    side->taken = side->route;
    if (side->route == Route::kStrided && scattered) {
      side->taken = nf_->shared_->mapped() != nullptr ? Route::kMapped : Route::kStaged;
    }
  }
}

void SharedLaunch::make_rooms(Side& side, std::uint32_t before, std::uint32_t behind) {
  side.rooms.clear();
  side.frames_bytes = 0;
  if (side.body == Frames::kNone || side.taken != Route::kStaged) {
    return;
  }
  for (std::uint32_t row = 0; row < rows_in_all(); ++row) {
    Place const& place = side.body == Frames::kFrame ? frames_[row] : payloads_[row];
    const std::uint32_t begin = place.begin - std::min(place.begin, before);
    const std::uint32_t end = std::min(place.end + behind, packet::kSlotBytes);
    const std::size_t at = side.frames_bytes + begin % kFrameAlign;
    side.rooms.push_back({static_cast<u32>(at), static_cast<u16>(begin), static_cast<u16>(end - begin)});
    side.frames_bytes = round_up(at + end - begin, kFrameAlign);
  }
}

void SharedLaunch::fill_staging() {
  std::byte* host = staging_->bytes().data();
  ProgramSpec const& spec = nf_->spec();
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    const std::uint32_t prefix = packet::column_prefix(in_.columns, field);
    if (prefix == packet::kNoColumn) {
      continue;
    }
    std::byte* column = host + std::size_t{layout_.padded} * prefix;
    for (auto const* group : {&staged_, &undecided_}) {
      for (Staged const& staged : *group) {
        gather_column(field, staged.batch, column);
        column += std::size_t{staged.batch.size()} * packet::field_size(field);
      }
    }
  }
  for (Staged const& staged : staged_) {
    if (!staged.aux.empty()) {
      std::memcpy(host + layout_.aux + std::size_t{staged.first_row} * spec.aux_bytes, staged.aux.data(),
                  staged.aux.size());
    }
  }
  std::memcpy(host + layout_.slots, slots_.data(), slots_.size() * sizeof(std::uint32_t));
  if (!in_.rooms.empty()) {
    std::memcpy(host + layout_.rooms_in, in_.rooms.data(), in_.rooms.size() * sizeof(Room));
    const std::byte* pool = nf_->shared_->pool().data();
    for (std::uint32_t row = 0; row < rows_in_all(); ++row) {
      Room const& room = in_.rooms[row];
      std::memcpy(host + layout_.frames_in + room.begin,
                  pool + std::size_t{slots_[row]} * packet::kSlotBytes + room.slot_begin, room.bytes);
    }
  }
  if (!out_.rooms.empty()) {
    std::memcpy(host + layout_.rooms_out, out_.rooms.data(), out_.rooms.size() * sizeof(Room));
  }
  std::memset(host + layout_.out, 0, layout_.out_columns - layout_.out);
}

Status SharedLaunch::enqueue_runs(bool in) {
  ProgramSpec const& spec = nf_->spec();
  const std::span<std::byte> pool = nf_->shared_->pool();
  device::Buffer& twin = nf_->shared_->buffer();
  for (Run const& run : runs_) {
    const std::uint32_t begin = in ? run.begin : run.begin - std::min(run.begin, spec.headroom);
    const std::uint32_t end = in ? run.end : std::min(run.end + spec.tailroom, packet::kSlotBytes);
    const std::size_t at = std::size_t{run.first} * packet::kSlotBytes + begin;
    const std::size_t reach = std::size_t{run.slots - 1} * packet::kSlotBytes + (end - begin);
    const device::RowShape shape{end - begin, packet::kSlotBytes, run.slots};
    if (in) {
      CATENA_RETURN_IF_ERROR(stream_->copy_rows_to_device(twin, at, pool.subspan(at, reach), shape));
    } else {
      CATENA_RETURN_IF_ERROR(stream_->copy_rows_to_host(pool.subspan(at, reach), twin, at, shape));
    }
    (in ? transfers_.bytes_to_device : transfers_.bytes_to_host) += std::uint64_t{run.slots} * (end - begin);
  }
  return absl::OkStatus();
}

Status SharedLaunch::enqueue_transfer(Side const& side, bool in) {
  const bool kernel_moves_body = side.body != Frames::kNone && side.taken != Route::kStrided;
  if (!is_warming_up_ && (rows_in_all() == 0 || (!side.has_kernel && !kernel_moves_body))) {
    return absl::OkStatus();
  }
  TransferParams params{};
  params.rows = rows_in_all();
  params.decided = count_;
  params.padded = layout_.padded;
  params.slots = nf_->shared_->slots();
  params.slots_offset = layout_.slots;
  params.columns_offset = in ? 0 : layout_.out_columns;
  params.rooms_offset = in ? layout_.rooms_in : layout_.rooms_out;
  params.frames_offset = in ? layout_.frames_in : layout_.frames_out;
  params.frames_bytes = side.frames_bytes;
  params.flags_offset = layout_.out + sizeof(FaultReport);
  params.body = !kernel_moves_body ? kNoBody : side.taken == Route::kMapped ? kBodyMapped : kBodyStaged;
  const std::array<device::KernelArgument, 4> arguments{batch_.get(), &nf_->shared_->buffer(), nf_->shared_->mapped(),
                                                        std::as_bytes(std::span(&params, 1))};
  const std::uint32_t lanes = side.body == Frames::kNone ? 1 : kTransferLanes;
  const std::uint64_t work_items = std::uint64_t{is_warming_up_ ? capacity() : params.rows} * lanes;
  const device::LaunchShape shape{static_cast<std::uint32_t>((work_items + kTransferGroup - 1) / kTransferGroup),
                                  kTransferGroup, 0};
  return stream_->launch(in ? *nf_->move_in_ : *nf_->move_out_, shape, arguments);
}

Status SharedLaunch::enqueue_kernel() {
  LaunchParams params{};
  params.padded = layout_.padded;
  params.out_offset = layout_.out;
  params.batch_bytes = layout_.end;
  params.spill_row_bytes = std::uint64_t{packet::kSlotBytes} * nf_->spec().policy.spill_factor;
  params.slots = nf_->shared_->slots();
  return enqueue_nf_kernel(params);
}

Status SharedLaunch::enqueue_warm_up() {
  CATENA_RETURN_IF_ERROR(enqueue_transfer(in_, true));
  CATENA_RETURN_IF_ERROR(enqueue_kernel());
  return enqueue_transfer(out_, false);
}

Status SharedLaunch::submit() {
  ProgramSpec const& spec = nf_->spec();
  collect_rows();
  choose_routes();
  make_rooms(in_, 0, 0);
  make_rooms(out_, spec.headroom, spec.tailroom);
  layout_ = layout_for(rows_in_all(), in_.frames_bytes, out_.frames_bytes);
  fill_staging();

  const std::span<const std::byte> to_device = staging_->bytes().first(layout_.out_columns);
  CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, to_device));
  if (in_.body != Frames::kNone && in_.taken == Route::kStrided) {
    CATENA_RETURN_IF_ERROR(enqueue_runs(true));
  }
  CATENA_RETURN_IF_ERROR(enqueue_transfer(in_, true));
  CATENA_RETURN_IF_ERROR(enqueue_kernel());
  CATENA_RETURN_IF_ERROR(enqueue_transfer(out_, false));
  if (out_.body != Frames::kNone && out_.taken == Route::kStrided) {
    CATENA_RETURN_IF_ERROR(enqueue_runs(false));
  }
  CATENA_RETURN_IF_ERROR(
      stream_->copy_to_host(staging_out_->bytes().first(layout_.end - layout_.out), *batch_, layout_.out));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  faults_ = out(layout_.out);
  results_ = out(layout_.results);
  count_transfers(to_device.size(), layout_.end - layout_.out);
  return stream_->flush();
}

void SharedLaunch::count_transfers(std::size_t staged_in, std::size_t staged_out) {
  const auto mapped_bytes = [this](Side const& side) {
    std::uint64_t bytes = 0;
    if (side.body != Frames::kNone && side.taken == Route::kMapped) {
      for (Place const& place : side.body == Frames::kFrame ? frames_ : payloads_) {
        bytes += place.end - place.begin;
      }
    }
    const packet::FieldSet header = side.moved & packet::kFrameFields & ~side.columns;
    return bytes + (packet::has_frame(side.moved) ? 0 : std::uint64_t{rows_in_all()} * packet::columns_size(header));
  };
  transfers_.packets += rows_in_all();
  transfers_.bytes_to_device += staged_in + mapped_bytes(in_);
  transfers_.bytes_to_host += staged_out + mapped_bytes(out_);
}

bool SharedLaunch::fits(std::uint32_t row) const {
  ProgramSpec const& spec = nf_->spec();
  const auto value = [&](packet::Field field) {
    const std::byte* column =
        out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_.columns, field));
    std::uint16_t number = 0;
    std::memcpy(&number, column + std::size_t{row} * sizeof number, sizeof number);
    return std::uint32_t{number};
  };
  const std::uint32_t begin =
      packet::contains(out_.columns, packet::kMetaOffset) ? value(packet::kMetaOffset) : frames_[row].begin;
  const std::uint32_t length = packet::contains(out_.columns, packet::kMetaLength)
                                   ? value(packet::kMetaLength)
                                   : frames_[row].end - frames_[row].begin;
  return length >= packet::kEthernetBytes && begin + spec.headroom >= frames_[row].begin &&
         begin + length <= std::min(frames_[row].end + spec.tailroom, packet::kSlotBytes);
}

void SharedLaunch::apply_rows(packet::Batch const& batch, std::uint32_t first_row) {
  const bool moves_borders = (nf_->spec().writes & packet::fields(packet::kMetaOffset, packet::kMetaLength)) != 0;
  if (moves_borders && first_row < count_) {
    for (std::uint32_t row = first_row; row < first_row + batch.size(); ++row) {
      if (!faulted(row) && !fits(row)) {
        mark_faulted(row, frames_[row].begin);
      }
    }
  }
  const auto skip = [&](std::uint32_t row) {
    return faulted(first_row + row);  // what a strayed kernel says about a packet is not believed
  };
  // metadata first: it says where the rest belongs
  for (std::uint32_t field = packet::kFieldCount; field-- > 0;) {
    const std::uint32_t prefix = packet::column_prefix(out_.columns & out_.moved, field);
    if (prefix == packet::kNoColumn) {
      continue;
    }
    scatter_column(field, batch,
                   out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_.columns, field)) +
                       std::size_t{first_row} * packet::field_size(field),
                   skip);
  }
  if (out_.rooms.empty()) {
    return;
  }
  packet::MetaColumns const& meta = batch.meta();
  std::uint32_t row = first_row;
  for (const std::uint32_t slot : batch.slots()) {
    Room const& room = out_.rooms[row];
    std::uint32_t begin = payloads_[row].begin;
    std::uint32_t end = payloads_[row].end;
    if (out_.body == Frames::kFrame) {
      begin = meta.offset[slot];
      end = begin + meta.length[slot];
    }
    if (!faulted(row)) {
      std::memcpy(batch.region() + std::size_t{slot} * packet::kSlotBytes + begin,
                  out(layout_.frames_out + room.begin) + (begin - room.slot_begin), end - begin);
    }
    ++row;
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
