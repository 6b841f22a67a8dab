// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/packed_launch.hpp"

#include <catena/core/text.hpp>
#include <catena/kernel/launch_params.hpp>

#include "gpu/copy/layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::kernel {
namespace {

/// Room for fetched spill areas, unless the longest packet's takes more.
constexpr std::size_t kSpillStagingBytes = std::size_t{1} << 20;
constexpr std::size_t kLongestPacketBytes = 0xFFFF;
/// A copy that brings this many bytes too many costs less than another copy.
constexpr std::size_t kSpillGapBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kSpillLimit{10};

}  // namespace

Result<std::unique_ptr<PackedLaunch>> PackedLaunch::create(device::Device& device, std::span<const Nf> nfs,
                                                           PackedFormat const& format) {
  std::unique_ptr<PackedLaunch> launch(new PackedLaunch());
  launch->format_ = &format;
  for (Nf const& nf : nfs) {
    launch->parts_.push_back({nf, nullptr, nullptr});
  }
  CATENA_ASSIGN_OR_RETURN(launch->stream_, device.create_stream());
  CATENA_RETURN_IF_ERROR(launch->allocate(device));
  // drivers finish compiling at the first launch, PoCL for the number of work-items: see Launch::create()
  CATENA_RETURN_IF_ERROR(launch->enqueue_kernels(0, format.max_packets()));
  CATENA_RETURN_IF_ERROR(launch->wait(copy::kSetUpLimit));
  return launch;
}

Status PackedLaunch::warm_up(DeviceNf& nf, std::uint32_t max_packets) {
  DeviceNf const* const only[] = {&nf};
  CATENA_ASSIGN_OR_RETURN(const PackedFormat format, PackedFormat::create(only, 1, copy::kFrameAlign));
  const Nf nfs[] = {{&nf}};
  CATENA_ASSIGN_OR_RETURN(const auto launch, create(nf.device(), nfs, format));
  CATENA_RETURN_IF_ERROR(launch->enqueue_kernels(0, max_packets));
  return launch->wait(copy::kSetUpLimit);
}

Status PackedLaunch::wait(std::chrono::nanoseconds limit) {
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  CATENA_RETURN_IF_ERROR(stream_->flush());
  return event_->wait(limit, "the first packed launch");
}

Status PackedLaunch::allocate(device::Device& device) {
  CATENA_ASSIGN_OR_RETURN(batch_, device.allocate(format_->batch_bytes()));
  CATENA_ASSIGN_OR_RETURN(out_, device.allocate(std::max<std::size_t>(1, format_->out_bytes())));
  CATENA_ASSIGN_OR_RETURN(staging_, device.allocate_pinned(format_->batch_bytes()));
  CATENA_ASSIGN_OR_RETURN(staging_out_, device.allocate_pinned(std::max<std::size_t>(1, format_->out_bytes())));
  CATENA_RETURN_IF_ERROR(stream_->fill(*batch_, 0, format_->batch_bytes(), copy::kPoison));
  CATENA_RETURN_IF_ERROR(stream_->fill(*out_, 0, out_->size(), copy::kPoison));
  std::memset(staging_out_->bytes().data(), 0, staging_out_->bytes().size());
  std::size_t longest_fetch = 0;
  for (Part& part : parts_) {
    const std::size_t spill_bytes = format_->max_bytes() * part.nf.nf->spec().spill_factor;
    if (spill_bytes == 0) {
      continue;
    }
    CATENA_ASSIGN_OR_RETURN(part.spill, device.allocate(spill_bytes));
    if (part.nf.returns_spill) {
      CATENA_ASSIGN_OR_RETURN(part.returned, device.allocate_pinned(spill_bytes));
      std::memset(part.returned->bytes().data(), 0, spill_bytes);
      CATENA_RETURN_IF_ERROR(stream_->fill(*part.spill, 0, spill_bytes, copy::kPoison));
    }
    if (!part.nf.returns_spill) {
      longest_fetch = std::max(longest_fetch, kLongestPacketBytes * part.nf.nf->spec().spill_factor);
    }
  }
  if (longest_fetch > 0) {
    CATENA_ASSIGN_OR_RETURN(staging_spill_, device.allocate_pinned(std::max(longest_fetch, kSpillStagingBytes)));
  }
  packets_ = std::make_unique<PackedPackets>(*format_, staging_->bytes(), PackedPackets::Reader::kDevice);
  return absl::OkStatus();
}

Status PackedLaunch::enqueue_kernels(std::uint32_t count, std::uint32_t work_packets) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    PackedPart const& where = format_->parts()[i];
    CATENA_RETURN_IF_ERROR(stream_->fill(*out_, where.out_offset, where.results_offset - where.out_offset, 0));
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part const& part = parts_[i];
    PackedPart const& where = format_->parts()[i];
    LaunchParams params{};
    params.padded = format_->padded();
    params.batch_offset = where.batch_offset;
    params.frames_offset = format_->contents() - where.batch_offset;
    params.frames_bytes = format_->max_bytes();
    params.out_offset = where.out_offset;
    CATENA_RETURN_IF_ERROR(
        part.nf.nf->launch(*stream_, {batch_.get(), out_.get(), params}, part.spill.get(), count, work_packets));
  }
  return absl::OkStatus();
}

Status PackedLaunch::submit() {
  const std::uint32_t count = packets_->count();
  const std::span<const std::byte> in = packets_->used();
  event_.reset();
  CATENA_RETURN_IF_ERROR(timestamps_.put(*stream_, LaunchTimestamps::kBegin));
  CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, in));
  CATENA_RETURN_IF_ERROR(timestamps_.put(*stream_, LaunchTimestamps::kMovedIn));
  CATENA_RETURN_IF_ERROR(enqueue_kernels(count, count));
  CATENA_RETURN_IF_ERROR(timestamps_.put(*stream_, LaunchTimestamps::kComputed));
  std::size_t back = 0;
  if (!parts_.empty()) {
    PackedPart const& last = format_->parts().back();
    back = last.results_offset + std::size_t{count} * last.result_bytes;
    CATENA_RETURN_IF_ERROR(stream_->copy_to_host(staging_out_->bytes().first(back), *out_, 0));
  }
  for (Part const& part : parts_) {
    if (part.returned) {
      const std::size_t bytes = packets_->content_bytes() * part.nf.nf->spec().spill_factor;
      CATENA_RETURN_IF_ERROR(stream_->copy_to_host(part.returned->bytes().first(bytes), *part.spill, 0));
      back += bytes;
    }
  }
  CATENA_RETURN_IF_ERROR(timestamps_.put(*stream_, LaunchTimestamps::kMovedBack));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  transfers_.packets += count;
  transfers_.bytes_to_device += in.size();
  transfers_.bytes_to_host += back;
  return stream_->flush();
}

Result<bool> PackedLaunch::poll() { return event_->ready(); }

Status PackedLaunch::recompute(std::uint32_t times) {
  const std::uint32_t count = packets_->count();
  event_.reset();
  for (std::uint32_t i = 0; i < times; ++i) {
    CATENA_RETURN_IF_ERROR(enqueue_kernels(count, count));
  }
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  return stream_->flush();
}

Result<std::shared_ptr<DeviceClock const>> PackedLaunch::make_clock() {
  return DeviceClock::create(*stream_, parts_.empty() ? "the device" : parts_.front().nf.nf->device().info().name);
}

FaultReport const& PackedLaunch::faults(std::size_t nf) const {
  return *reinterpret_cast<FaultReport const*>(staging_out_->bytes().data() + format_->parts()[nf].out_offset);
}

bool PackedLaunch::faulted(std::size_t nf, std::uint32_t row) const {
  return staging_out_->bytes()[format_->parts()[nf].out_offset + sizeof(FaultReport) + row] != std::byte{0};
}

std::span<const std::byte> PackedLaunch::results(std::size_t nf) const {
  PackedPart const& part = format_->parts()[nf];
  return staging_out_->bytes().subspan(part.results_offset, std::size_t{packets_->count()} * part.result_bytes);
}

std::span<const std::byte> PackedLaunch::returned_spill(std::size_t nf, std::uint32_t row) const {
  const std::size_t factor = parts_[nf].nf.nf->spec().spill_factor;
  Extent const& extent = packets_->extent(row);
  return parts_[nf].returned->bytes().subspan(extent.begin * factor, extent.length * factor);
}

Result<std::size_t> PackedLaunch::fetch_spill(std::size_t nf, std::span<const SpillNeed> needs) {
  Part const& part = parts_[nf];
  const std::size_t factor = part.nf.nf->spec().spill_factor;
  const std::span<std::byte> extent = staging_spill_->bytes();
  fetched_.clear();
  std::size_t used = 0;
  for (std::size_t i = 0; i < needs.size();) {
    // the needs [i, behind) in one copy of the spill area's bytes [begin, end)
    const auto range_of = [&](SpillNeed const& need) {
      const std::size_t begin = packets_->extent(need.row).begin * factor;
      return std::pair(begin, begin + need.bytes);
    };
    const auto [begin, first_end] = range_of(needs[i]);
    std::size_t end = first_end;
    std::size_t behind = i;
    for (; behind < needs.size(); ++behind) {
      const auto [next_begin, next_end] = range_of(needs[behind]);
      if (needs[behind].bytes > packets_->extent(needs[behind].row).length * factor) {
        return absl::InvalidArgumentError(
            concat("row ", needs[behind].row, " has no ", needs[behind].bytes, " bytes of spill area"));
      }
      if (next_begin > end + kSpillGapBytes || next_end - begin > extent.size() - used) {
        break;
      }
      end = next_end;
    }
    if (behind == i) {
      break;
    }
    const std::span<std::byte> target = extent.subspan(used, end - begin);
    CATENA_RETURN_IF_ERROR(stream_->copy_to_host(target, *part.spill, begin));
    transfers_.bytes_to_host += target.size();
    for (; i < behind; ++i) {
      fetched_.push_back(target.subspan(range_of(needs[i]).first - begin, needs[i].bytes));
    }
    used += target.size();
  }
  CATENA_ASSIGN_OR_RETURN(const auto done, stream_->record());
  CATENA_RETURN_IF_ERROR(stream_->flush());
  CATENA_RETURN_IF_ERROR(done->wait(kSpillLimit, concat("spilled results of ", part.nf.nf->spec().name)));
  return fetched_.size();
}

}  // namespace catena::kernel
