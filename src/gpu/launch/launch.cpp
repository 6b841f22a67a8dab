// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/launch.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "gpu/copy/layout.hpp"

namespace catena::kernel {
namespace {

constexpr std::size_t kSpillChunkBytes = std::size_t{64} << 10;
/// Commands are recorded for these many rows at least, and for twice as many, and so on: work-items without a row end
/// at once.
constexpr std::uint32_t kMinRecordedRows = 64;

}  // namespace

Result<std::unique_ptr<Launch>> Launch::create(DeviceNf& nf, LaunchBounds const& bounds, hostcopy::HostMover& mover) {
  if (bounds.max_groups != 0 && nf.groups() != Groups::kAny) {
    return absl::InvalidArgumentError(concat(nf.spec().name, " was compiled for as many work-groups as packets need"));
  }
  const copy::CopyRequest request{&nf.device(), &nf.spec(), &nf.plan(), nf.shared(), nf.moves()};
  std::unique_ptr<Launch> launch(
      new Launch(nf, bounds, mover, copy::LaunchCopy::make(request, std::max(bounds.room, bounds.max_packets))));
  launch->rows_.reserve(bounds.max_packets);
  CATENA_ASSIGN_OR_RETURN(launch->stream_, nf.device().create_stream());
  CATENA_RETURN_IF_ERROR(launch->copy_->allocate(*launch->stream_));
  if (nf.spec().spill_factor > 0) {
    CATENA_ASSIGN_OR_RETURN(launch->spill_,
                            nf.device().allocate(std::max<std::size_t>(1, launch->copy_->spill_bytes())));
  }
  CATENA_RETURN_IF_ERROR(launch->warm_up());
  CATENA_RETURN_IF_ERROR(launch->record_commands());
  CATENA_RETURN_IF_ERROR(launch->wait(copy::kSetUpLimit, concat("the first launch of ", nf.spec().name)));
  return launch;
}

/// Drivers finish compiling a kernel when it is first launched (PoCL takes a second): not while packets wait for it. As
/// many work-items as ever will be: PoCL makes another variant for a launch larger than all before it, and ends the
/// process where that happens while the kernel runs.
Status Launch::warm_up() {
  CATENA_RETURN_IF_ERROR(copy_->warm_up_in(*stream_));
  CATENA_RETURN_IF_ERROR(nf_->launch(*stream_, copy_->kernel_arguments(), spill_.get(), rows_.decided(), room_));
  return copy_->warm_up_out(*stream_);
}

Status Launch::record_commands() {
  std::uint32_t max_rows = 0;
  for (std::uint32_t rows = kMinRecordedRows; max_rows < bounds_.max_packets; rows *= 2) {
    max_rows = std::min(rows, bounds_.max_packets);
    copy_->assume_default(max_rows);
    if (const std::optional<copy::BodyPaths> paths = copy_->repeatable()) {
      CATENA_RETURN_IF_ERROR(kernels_for(max_rows, *paths).status());
    }
  }
  return absl::OkStatus();
}

Result<Launch::Kernels const*> Launch::kernels_for(std::uint32_t max_rows, copy::BodyPaths const& paths) {
  const KernelsKey key{max_rows, paths, timestamps_.started()};
  const auto known = std::find_if(kernels_.begin(), kernels_.end(), [&](Kernels const& k) { return k.key == key; });
  if (known != kernels_.end()) {
    return &*known;
  }
  CATENA_ASSIGN_OR_RETURN(Kernels kernels, record(key));
  kernels_.push_back(kernels);
  return &kernels_.back();
}

/// The kernels that move in, the NF's own and those that move out.
Result<Launch::Kernels> Launch::record(KernelsKey const& key) {
  Kernels kernels{key};
  CATENA_ASSIGN_OR_RETURN(kernels.commands, new_commands(bounds_.partition.get()));
  kernels.before = kernels.after = kernels.commands;
  if (is_divided()) {
    CATENA_ASSIGN_OR_RETURN(kernels.before, new_commands(bounds_.moves.get()));
    CATENA_ASSIGN_OR_RETURN(kernels.after, new_commands(bounds_.moves.get()));
  }
  CATENA_RETURN_IF_ERROR(copy_->launch_in(*kernels.before, key.max_rows));
  if (key.is_traced) {
    CATENA_ASSIGN_OR_RETURN(kernels.moved_in, kernels.before->record_timestamp());
  }
  CATENA_RETURN_IF_ERROR(launch_nf(*kernels.commands, key.max_rows));
  if (key.is_traced) {
    CATENA_ASSIGN_OR_RETURN(kernels.computed, kernels.commands->record_timestamp());
  }
  CATENA_RETURN_IF_ERROR(copy_->launch_out(*kernels.after, key.max_rows));
  CATENA_RETURN_IF_ERROR(stream_->finalize(*kernels.commands));
  if (is_divided()) {
    CATENA_RETURN_IF_ERROR(stream_->finalize(*kernels.before));
    CATENA_RETURN_IF_ERROR(stream_->finalize(*kernels.after));
  }
  return kernels;
}

Result<device::CommandBuffer*> Launch::new_commands(device::Partition* partition) {
  CATENA_ASSIGN_OR_RETURN(auto commands, nf_->device().create_command_buffer(partition));
  command_buffers_.push_back(std::move(commands));
  return command_buffers_.back().get();
}

void Launch::begin() {
  rows_.clear();
  aux_.clear();
  spilled_.clear();
  if (!spill_staging_.empty()) {
    spill_staging_.resize(1);
  }
  spill_staging_used_ = 0;
  event_.reset();
  drain_.reset();
  moving_.reset();
  is_staging_ = false;
  kernel_ran_ = false;
  is_applied_ = false;
}

void Launch::add(packet::Batch const& unit, std::span<const std::uint32_t> decided, std::span<const std::byte> aux) {
  rows_.add(unit, decided);
  aux_.push_back(aux);
}

Status Launch::launch_nf(device::CommandRecorder& target, std::uint32_t work_packets) {
  return nf_->launch(target, copy_->kernel_arguments(), spill_.get(), rows_.decided(), work_packets,
                     bounds_.max_groups);
}

Status Launch::enqueue_kernel() {
  event_.reset();
  return launch_nf(*stream_, rows_.decided());
}

Result<std::vector<double>> Launch::time_kernel(device::Partition* partition, std::uint32_t runs,
                                                std::chrono::nanoseconds limit) {
  if (rows_.decided() == 0 || !kernel_ran_) {
    return absl::FailedPreconditionError(concat(nf_->spec().name, ": no packets are on the device to time it over"));
  }
  CATENA_ASSIGN_OR_RETURN(const bool is_done, poll());
  if (!is_done) {
    return absl::FailedPreconditionError(concat(nf_->spec().name, ": its batch is not done"));
  }
  CATENA_ASSIGN_OR_RETURN(const auto commands, nf_->device().create_command_buffer(partition));
  CATENA_ASSIGN_OR_RETURN(device::Event* const begin, commands->record_timestamp());
  CATENA_RETURN_IF_ERROR(launch_nf(*commands, rows_.decided()));
  CATENA_ASSIGN_OR_RETURN(device::Event* const end, commands->record_timestamp());
  CATENA_RETURN_IF_ERROR(stream_->finalize(*commands));
  std::vector<double> times;
  for (std::uint32_t run = 0; run < runs; ++run) {
    CATENA_RETURN_IF_ERROR(stream_->enqueue(*commands));
    CATENA_ASSIGN_OR_RETURN(const auto done, stream_->record());
    CATENA_RETURN_IF_ERROR(stream_->flush());
    CATENA_RETURN_IF_ERROR(done->wait(limit, concat(nf_->spec().name, " on ", nf_->device().info().name)));
    CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds took, end->since(*begin));
    times.push_back(static_cast<double>(took.count()));
  }
  return times;
}

Status Launch::enqueue_kernels() {
  if (const std::optional<copy::BodyPaths> paths = copy_->repeatable()) {
    const std::uint32_t max_rows =
        std::min(std::max(std::bit_ceil(rows_.size()), kMinRecordedRows), bounds_.max_packets);
    CATENA_ASSIGN_OR_RETURN(Kernels const* const kernels, kernels_for(max_rows, *paths));
    kernel_ran_ = true;
    const auto compute = [&] { return stream_->enqueue(*kernels->commands); };
    if (is_divided()) {
      CATENA_RETURN_IF_ERROR(stream_->enqueue(*kernels->before));
    }
    CATENA_RETURN_IF_ERROR(bounds_.serializer != nullptr ? bounds_.serializer->take(*stream_, compute) : compute());
    if (is_divided()) {
      CATENA_RETURN_IF_ERROR(stream_->enqueue(*kernels->after));
    }
    timestamps_.use(LaunchTimestamps::kMovedIn, kernels->moved_in);
    timestamps_.use(LaunchTimestamps::kComputed, kernels->computed);
    return absl::OkStatus();
  }
  CATENA_RETURN_IF_ERROR(copy_->launch_in(*stream_, rows_.size()));
  CATENA_RETURN_IF_ERROR(record_timestamp(LaunchTimestamps::kMovedIn));
  kernel_ran_ = true;
  const auto launch = [&] { return launch_nf(*stream_, rows_.decided()); };
  CATENA_RETURN_IF_ERROR(bounds_.serializer != nullptr ? bounds_.serializer->take(*stream_, launch) : launch());
  CATENA_RETURN_IF_ERROR(record_timestamp(LaunchTimestamps::kComputed));
  return copy_->launch_out(*stream_, rows_.size());
}

void Launch::start_moves() {
  if (!moves_.empty()) {
    moving_ = mover_->start(moves_);
  }
}

bool Launch::moves_are_done() {
  if (moving_ && mover_->is_done(*moving_)) {
    moving_.reset();
  }
  return !moving_;
}

Status Launch::submit() {
  rows_.arrange();
  moves_.clear();
  CATENA_RETURN_IF_ERROR(copy_->prepare(rows_, aux_, moves_));
  start_moves();
  is_staging_ = !moves_are_done();
  return is_staging_ ? absl::OkStatus() : enqueue();
}

Status Launch::enqueue() {
  CATENA_RETURN_IF_ERROR(record_timestamp(LaunchTimestamps::kBegin));
  CATENA_RETURN_IF_ERROR(copy_->enqueue_in(*stream_));
  CATENA_RETURN_IF_ERROR(enqueue_kernels());
  CATENA_RETURN_IF_ERROR(copy_->enqueue_out(*stream_));
  CATENA_RETURN_IF_ERROR(record_timestamp(LaunchTimestamps::kMovedBack));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  return stream_->flush();
}

Status Launch::advance() {
  if (!is_staging_ || !moves_are_done()) {
    return absl::OkStatus();
  }
  is_staging_ = false;
  return enqueue();
}

Result<bool> Launch::poll() {
  CATENA_RETURN_IF_ERROR(advance());
  if (is_staging_) {
    return false;
  }
  if (!event_) {
    CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
    CATENA_RETURN_IF_ERROR(stream_->flush());
  }
  return event_->ready();
}

bool Launch::apply() {
  if (!is_applied_) {
    is_applied_ = true;
    moves_.clear();
    copy_->apply(moves_);
    start_moves();
  }
  return moves_are_done();
}

Result<bool> Launch::drained() {
  if (!moves_are_done()) {
    return false;
  }
  if (!drain_) {
    CATENA_ASSIGN_OR_RETURN(drain_, stream_->record());
  }
  return drain_->ready();
}

Status Launch::wait(std::chrono::nanoseconds limit, std::string_view what) {
  const auto until = std::chrono::steady_clock::now() + limit;
  CATENA_ASSIGN_OR_RETURN(bool done, poll());
  while (is_staging_) {
    if (std::chrono::steady_clock::now() > until) {
      return absl::DeadlineExceededError(concat(what, ": ", mover_->engine(), " did not fill the staging"));
    }
    std::this_thread::yield();
    CATENA_ASSIGN_OR_RETURN(done, poll());
  }
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
  spill_staging_used_ += copy::round_up(bytes, copy::kRowAlign);
  spill_staging_used_ = std::min(spill_staging_used_, spill_staging_.back()->bytes().size());
  return room;
}

Status Launch::fetch_spill(std::uint32_t row, std::uint32_t bytes) {
  const std::uint64_t factor = nf_->spec().spill_factor;
  const bool in_order = spilled_.empty() || spilled_.back().row < row;
  const Extent extent = row < rows_.decided() ? copy_->spill_extent(row) : Extent{};
  if (!in_order || bytes > extent.length * factor) {
    return absl::InvalidArgumentError(concat("row ", row, " of ", rows_.decided(), " has no ", bytes,
                                             " bytes of spill area, or was asked for out of order"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::span<std::byte> room, spill_staging(bytes));
  CATENA_RETURN_IF_ERROR(stream_->copy_to_host(room, *spill_, extent.begin * factor));
  spilled_.push_back({row, room});
  spilled_bytes_ += bytes;
  event_.reset();
  return absl::OkStatus();
}

std::span<const std::byte> Launch::spill(std::uint32_t row) const {
  const auto found = std::lower_bound(spilled_.begin(), spilled_.end(), row,
                                      [](Spilled const& entry, std::uint32_t wanted) { return entry.row < wanted; });
  return found == spilled_.end() || found->row != row ? std::span<const std::byte>() : found->bytes;
}

copy::TransferCounts Launch::take_transfers() {
  copy::TransferCounts counts = copy_->take_transfers();
  counts.bytes_to_host += std::exchange(spilled_bytes_, 0);
  return counts;
}

}  // namespace catena::kernel
