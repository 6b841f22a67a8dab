// SPDX-License-Identifier: Apache-2.0
#include "kernel/launch.hpp"

#include <catena/core/text.hpp>
#include <catena/kernel/launch_params.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernel/direct_launch.hpp"
#include "kernel/launch_support.hpp"
#include "kernel/shared_launch.hpp"

namespace catena::kernel {
namespace {

constexpr std::size_t kSpillChunkBytes = std::size_t{64} << 10;

}  // namespace

Result<std::unique_ptr<Launch>> Launch::create(DeviceNf& nf, std::uint32_t max_packets) {
  std::unique_ptr<Launch> launch;
  if (nf.plan().shared) {
    launch = std::make_unique<SharedLaunch>(nf, max_packets);
  } else {
    launch = std::make_unique<DirectLaunch>(nf, max_packets);
  }
  CATENA_ASSIGN_OR_RETURN(launch->stream_, nf.device().create_stream());
  CATENA_RETURN_IF_ERROR(launch->allocate());
  // Drivers finish compiling a kernel when it is first launched (PoCL takes a second): not while packets wait for it.
  // As many work-items as ever will be: PoCL makes another variant for a launch larger than all before it, and ends
  // the process where that happens while the kernel runs.
  launch->is_warming_up_ = true;
  CATENA_RETURN_IF_ERROR(launch->enqueue_warm_up());
  launch->is_warming_up_ = false;
  CATENA_RETURN_IF_ERROR(launch->record_commands());
  CATENA_RETURN_IF_ERROR(launch->wait(kSetUpLimit, concat("the first launch of ", nf.spec().name)));
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
  drain_.reset();
  count_ = 0;
  kernel_ran_ = false;
}

void Launch::add(packet::Batch const& batch, std::span<const std::byte> aux) {
  staged_.push_back({batch, aux, count_});
  count_ += batch.size();
}

Status Launch::allocate_memory(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes,
                               std::size_t spill_bytes) {
  device::Device& device = nf_->device();
  CATENA_ASSIGN_OR_RETURN(batch_, device.allocate(batch_bytes));
  if (nf_->spec().spill_factor > 0) {
    CATENA_ASSIGN_OR_RETURN(spill_, device.allocate(std::max<std::size_t>(1, spill_bytes)));
  }
  CATENA_ASSIGN_OR_RETURN(staging_, device.allocate_pinned(in_bytes));
  CATENA_ASSIGN_OR_RETURN(staging_out_, device.allocate_pinned(out_bytes));
  CATENA_RETURN_IF_ERROR(stream_->fill(*batch_, 0, batch_bytes, kPoison));
  std::memset(staging_out_->bytes().data(), 0, staging_out_->bytes().size());
  return absl::OkStatus();
}

Status Launch::check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const {
  if (batch_bytes > batch_->size() || in_bytes > staging_->bytes().size() || out_bytes > staging_out_->bytes().size()) {
    return absl::InternalError(concat("a launch of ", nf_->spec().name, " needs ", batch_bytes, " bytes, ", in_bytes,
                                      " in and ", out_bytes, " out; it has ", batch_->size(), ", ",
                                      staging_->bytes().size(), " and ", staging_out_->bytes().size()));
  }
  return absl::OkStatus();
}

Status Launch::launch_nf_kernel(device::CommandRecorder& target, device::Buffer& out, LaunchParams params,
                                std::uint32_t max_packets) {
  KernelSpec const& spec = nf_->spec();
  params.count = count_;
  params.state_bytes = nf_->state_ ? nf_->state_->size() : 0;
  params.spill_bytes = spill_ ? spill_->size() : 0;
  params.local_bytes = spec.local_bytes;
  const std::array<device::KernelArgument, 6> arguments{batch_.get(),
                                                        &out,
                                                        nf_->state_.get(),
                                                        spill_.get(),
                                                        nf_->shared_ != nullptr ? &nf_->shared_->buffer() : nullptr,
                                                        std::as_bytes(std::span(&params, 1))};
  const std::uint64_t work_items = std::uint64_t{is_warming_up_ ? max_packets_ : max_packets} * spec.lanes;
  const device::LaunchShape shape{
      std::max(1U, static_cast<std::uint32_t>((work_items + spec.group_size - 1) / spec.group_size)), spec.group_size,
      spec.local_bytes};
  return target.launch(*nf_->kernel_, shape, arguments);
}

Result<bool> Launch::poll() {
  if (!event_) {
    CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
    CATENA_RETURN_IF_ERROR(stream_->flush());
  }
  return event_->ready();
}

Result<bool> Launch::drained() {
  if (!drain_) {
    CATENA_ASSIGN_OR_RETURN(drain_, stream_->record());
  }
  return drain_->ready();
}

Status Launch::wait(std::chrono::nanoseconds limit, std::string_view what) {
  CATENA_ASSIGN_OR_RETURN(const bool done, poll());
  return done ? absl::OkStatus() : event_->wait(limit, concat(what, " on ", nf_->device().info().name));
}

Status Launch::start_trace() {
  CATENA_ASSIGN_OR_RETURN(auto clock, DeviceClock::create(*stream_, nf_->device().info().name));
  timestamps_.start(std::move(clock));
  return record_commands();
}

Result<std::span<std::byte>> Launch::spill_staging(std::size_t bytes) {
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
  const std::uint64_t factor = nf_->spec().spill_factor;
  const bool in_order = spilled_.empty() || spilled_.back().row < row;
  const Extent extent = row < count_ ? spill_extent(row) : Extent{};
  if (!in_order || bytes > extent.length * factor) {
    return absl::InvalidArgumentError(
        concat("row ", row, " of ", count_, " has no ", bytes, " bytes of spill area, or was asked for out of order"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::span<std::byte> room, spill_staging(bytes));
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
    *report = {1, row, kAddressFrames, 0, offset, packet::kSlotBytes};
  }
  faults_[sizeof(FaultReport) + row] = std::byte{1};
}

std::span<const std::byte> Launch::results() const {
  return {results_, std::size_t{count_} * nf_->plan().result_bytes};
}

TransferCounts Launch::take_transfers() { return std::exchange(transfers_, {}); }

}  // namespace catena::kernel
