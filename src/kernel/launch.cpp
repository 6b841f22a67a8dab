// SPDX-License-Identifier: Apache-2.0
#include <catena/kernel/launch.hpp>

#include <catena/kernel/launch_params.hpp>

#include <catena/core/text.hpp>

#include "kernel/direct_launch.hpp"
#include "kernel/launch_support.hpp"
#include "kernel/shared_launch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace catena::kernel {
namespace {

constexpr std::size_t kSpillChunkBytes = std::size_t{64} << 10;

/// A field between a packet and a column; ICMP's stand around its checksum, which is a field by itself.
template <std::uint32_t Bytes>
void read_field(std::uint32_t field, std::byte* to, const std::uint8_t* packet) {
  if (field == packet::kIcmpHeader) {
    std::memcpy(to, packet, 2);
    std::memcpy(to + 2, packet + 4, 4);
  } else {
    std::memcpy(to, packet, Bytes);
  }
}
template <std::uint32_t Bytes>
void write_field(std::uint32_t field, std::uint8_t* packet, const std::byte* from) {
  if (field == packet::kIcmpHeader) {
    std::memcpy(packet, from, 2);
    std::memcpy(packet + 4, from + 2, 4);
  } else {
    std::memcpy(packet, from, Bytes);
  }
}

/// Whether the slots follow one another, as those of a unit normally do.
bool is_run(std::span<const std::uint32_t> slots) {
  std::uint32_t differences = 0;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    differences |= slots[i] ^ (slots[0] + i);
  }
  return differences == 0;
}

std::byte* meta_array(std::uint32_t field, packet::MetaColumns const& meta) {
  switch (field) {
    case packet::kMetaVerdict:
      return reinterpret_cast<std::byte*>(meta.verdict);
    case packet::kMetaPort:
      return reinterpret_cast<std::byte*>(meta.port);
    case packet::kMetaLength:
      return reinterpret_cast<std::byte*>(meta.length);
    case packet::kMetaOffset:
      return reinterpret_cast<std::byte*>(meta.offset);
    default:
      return reinterpret_cast<std::byte*>(meta.layers);
  }
}

std::uint8_t* field_in(packet::Batch const& batch, std::uint32_t field, std::uint32_t slot) {
  packet::MetaColumns const& meta = batch.meta();
  return batch.region() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] +
         packet::field_offset(field, meta.layers[slot]);
}

template <std::uint32_t Bytes>
void gather(std::uint32_t field, packet::Batch const& batch, std::byte* column) {
  if (field >= packet::kMetaVerdict) {
    const std::byte* from = meta_array(field, batch.meta());
    if (is_run(batch.slots()) && batch.size() > 0) {
      std::memcpy(column, from + std::size_t{batch.slots()[0]} * Bytes, std::size_t{batch.size()} * Bytes);
      return;
    }
    for (const std::uint32_t slot : batch.slots()) {
      std::memcpy(column, from + std::size_t{slot} * Bytes, Bytes);
      column += Bytes;
    }
    return;
  }
  for (const std::uint32_t slot : batch.slots()) {
    if (packet::has_field(field, batch.meta().layers[slot].flags)) {
      read_field<Bytes>(field, column, field_in(batch, field, slot));
    } else {
      std::memset(column, 0, Bytes);
    }
    column += Bytes;
  }
}

template <std::uint32_t Bytes>
void scatter(std::uint32_t field, packet::Batch const& batch, const std::byte* column, const std::byte* skip) {
  std::byte* meta = field >= packet::kMetaVerdict ? meta_array(field, batch.meta()) : nullptr;
  if (meta != nullptr && skip == nullptr && batch.size() > 0 && is_run(batch.slots())) {
    std::memcpy(meta + std::size_t{batch.slots()[0]} * Bytes, column, std::size_t{batch.size()} * Bytes);
    return;
  }
  for (std::uint32_t row = 0; row < batch.size(); ++row) {
    const std::uint32_t slot = batch.slots()[row];
    if (skip != nullptr && skip[row] != std::byte{0}) {
      continue;
    }
    const std::byte* from = column + std::size_t{row} * Bytes;
    if (meta != nullptr) {
      std::memcpy(meta + std::size_t{slot} * Bytes, from, Bytes);
    } else if (packet::has_field(field, batch.meta().layers[slot].flags)) {
      write_field<Bytes>(field, field_in(batch, field, slot), from);
    }
  }
}

/// Calls `copy` with the size of `field` as a constant: copies of a size that is known are a move each.
template <typename Copy>
void with_size_of(std::uint32_t field, Copy const& copy) {
  switch (packet::field_size(field)) {
    case 1:
      return copy(std::integral_constant<std::uint32_t, 1>());
    case 2:
      return copy(std::integral_constant<std::uint32_t, 2>());
    case 4:
      return copy(std::integral_constant<std::uint32_t, 4>());
    case 6:
      return copy(std::integral_constant<std::uint32_t, 6>());
    case 8:
      return copy(std::integral_constant<std::uint32_t, 8>());
    default:  // fields of variable size are no columns
      return;
  }
}

}  // namespace

void gather_column(std::uint32_t field, packet::Batch const& batch, std::byte* column) {
  with_size_of(field, [&](auto bytes) { gather<bytes()>(field, batch, column); });
}

void scatter_column(std::uint32_t field, packet::Batch const& batch, const std::byte* column, const std::byte* skip) {
  with_size_of(field, [&](auto bytes) { scatter<bytes()>(field, batch, column, skip); });
}

Result<std::unique_ptr<Launch>> Launch::create(DeviceNf& nf, std::uint32_t max_packets,
                                               std::uint32_t max_frame_bytes_each) {
  std::unique_ptr<Launch> launch;
  if (nf.spec().shared) {
    launch = std::make_unique<SharedLaunch>(nf, max_packets);
  } else {
    launch = std::make_unique<DirectLaunch>(nf, max_packets, max_frame_bytes_each);
  }
  CATENA_ASSIGN_OR_RETURN(launch->stream_, nf.device().create_stream());
  CATENA_RETURN_IF_ERROR(launch->allocate());
  // Drivers finish compiling a kernel when it is first launched (PoCL takes a second): not while packets wait for it.
  // As many work-items as ever will be: PoCL makes another variant for a launch larger than all before it, and ends
  // the process where that happens while the kernel runs.
  launch->is_warming_up_ = true;
  CATENA_RETURN_IF_ERROR(launch->enqueue_warm_up());
  launch->is_warming_up_ = false;
  CATENA_RETURN_IF_ERROR(launch->wait(kSetUpLimit, concat("the first launch of ", nf.spec().kernel)));
  return launch;
}

void Launch::begin() {
  staged_.clear();
  spilled_.clear();
  if (!spill_staging_.empty()) {
    spill_staging_.resize(1);
  }
  spill_staging_used_ = 0;
  event_.reset();
  count_ = 0;
}

void Launch::add(packet::Batch const& batch, std::span<const std::byte> aux) {
  staged_.push_back({batch, aux, count_});
  count_ += batch.size();
}

Status Launch::allocate_memory(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes,
                               std::size_t spill_bytes) {
  device::Device& device = nf_->device();
  CATENA_ASSIGN_OR_RETURN(batch_, device.allocate(batch_bytes));
  if (nf_->spec().policy.spill_factor > 0) {
    CATENA_ASSIGN_OR_RETURN(spill_, device.allocate(std::max<std::size_t>(1, spill_bytes)));
  }
  CATENA_ASSIGN_OR_RETURN(staging_, device.allocate_pinned(in_bytes));
  CATENA_ASSIGN_OR_RETURN(staging_out_, device.allocate_pinned(out_bytes));
  CATENA_RETURN_IF_ERROR(stream_->fill(*batch_, 0, batch_bytes, kPoison));
  std::memset(staging_out_->bytes().data(), 0, staging_out_->bytes().size());
  return absl::OkStatus();
}

Status Launch::enqueue_nf_kernel(device::Buffer& out, LaunchParams params) {
  ProgramSpec const& spec = nf_->spec();
  params.count = count_;
  params.state_bytes = nf_->state_ ? nf_->state_->size() : 0;
  params.spill_bytes = spill_ ? spill_->size() : 0;
  params.local_bytes = spec.policy.local_bytes;
  const std::array<device::KernelArgument, 6> arguments{batch_.get(),
                                                        &out,
                                                        nf_->state_.get(),
                                                        spill_.get(),
                                                        nf_->shared_ != nullptr ? &nf_->shared_->buffer() : nullptr,
                                                        std::as_bytes(std::span(&params, 1))};
  const std::uint64_t work_items = std::uint64_t{is_warming_up_ ? max_packets_ : count_} * spec.policy.lanes;
  const device::LaunchShape shape{
      std::max(1U, static_cast<std::uint32_t>((work_items + spec.policy.group_size - 1) / spec.policy.group_size)),
      spec.policy.group_size, spec.policy.local_bytes};
  event_.reset();
  return stream_->launch(*nf_->kernel_, shape, arguments);
}

Result<bool> Launch::poll() {
  if (!event_) {
    CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
    CATENA_RETURN_IF_ERROR(stream_->flush());
  }
  return event_->ready();
}

Status Launch::wait(std::chrono::nanoseconds limit, std::string_view what) {
  CATENA_ASSIGN_OR_RETURN(const bool done, poll());
  return done ? absl::OkStatus() : event_->wait(limit, concat(what, " on ", nf_->device().info().name));
}

Status Launch::start_trace() {
  CATENA_ASSIGN_OR_RETURN(auto clock, DeviceClock::create(*stream_, nf_->device().info().name));
  marks_.start(std::move(clock));
  return absl::OkStatus();
}

Result<std::span<std::byte>> Launch::spill_room(std::size_t bytes) {
  if (spill_staging_.empty() || spill_staging_.back()->bytes().size() - spill_staging_used_ < bytes) {
    CATENA_ASSIGN_OR_RETURN(auto chunk, nf_->device().allocate_pinned(std::max(bytes, kSpillChunkBytes)));
    spill_staging_.push_back(std::move(chunk));
    spill_staging_used_ = 0;
  }
  const auto room = spill_staging_.back()->bytes().subspan(spill_staging_used_, bytes);
  spill_staging_used_ += round_up(bytes, kRowAlign);
  spill_staging_used_ = std::min(spill_staging_used_, spill_staging_.back()->bytes().size());
  return room;
}

Status Launch::fetch_spill(std::uint32_t row, std::uint32_t bytes) {
  const std::uint64_t factor = nf_->spec().policy.spill_factor;
  const bool in_order = spilled_.empty() || spilled_.back().row < row;
  const Extent extent = row < count_ ? spill_extent(row) : Extent{};
  if (!in_order || bytes > extent.length * factor) {
    return absl::InvalidArgumentError(
        concat("row ", row, " of ", count_, " has no ", bytes, " bytes of spill area, or was asked for out of order"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::span<std::byte> room, spill_room(bytes));
  CATENA_RETURN_IF_ERROR(stream_->copy_to_host(room, *spill_, extent.begin * factor));
  spilled_.push_back({row, room});
  transfers_.bytes_to_host += bytes;
  event_.reset();
  return absl::OkStatus();
}

std::span<const std::byte> Launch::spill(std::uint32_t row) const {
  const auto found = std::lower_bound(spilled_.begin(), spilled_.end(), row,
                                      [](Spilled const& entry, std::uint32_t wanted) { return entry.row < wanted; });
  return found == spilled_.end() || found->row != row ? std::span<const std::byte>() : found->bytes;
}

FaultReport const& Launch::faults() const { return *reinterpret_cast<FaultReport const*>(faults_); }

bool Launch::faulted(std::uint32_t row) const { return faults_[sizeof(FaultReport) + row] != std::byte{0}; }

const std::byte* Launch::faulted_rows(std::uint32_t first_row) const {
  return faults().count == 0 ? nullptr : faults_ + sizeof(FaultReport) + first_row;
}

void Launch::mark_faulted(std::uint32_t row, std::uint64_t offset) {
  auto* report = reinterpret_cast<FaultReport*>(faults_);
  if (report->count++ == 0) {
    *report = {1, row, kRegionFrames, 0, offset, packet::kSlotBytes};
  }
  faults_[sizeof(FaultReport) + row] = std::byte{1};
}

std::span<const std::byte> Launch::results() const {
  return {results_, std::size_t{count_} * nf_->spec().result_bytes};
}

TransferCounts Launch::take_transfers() { return std::exchange(transfers_, {}); }

}  // namespace catena::kernel
