// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gpu_sharing.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::runtime {
namespace {

/// How often it is looked whether there are other parts.
constexpr std::chrono::milliseconds kPeriod = share::PartitionPlan::kPeriod;
/// The same if another process assigns them, as that costs little.
constexpr std::chrono::milliseconds kGivenPeriod{20};
/// What fails is tried again after twice the time, up to this.
constexpr std::chrono::milliseconds kMaxDelay{30'000};

}  // namespace

GpuSharing::GpuSharing(device::DeviceInfo info, chain::SharingOptions const& options,
                       SharedPartitions const& partitions, std::vector<Nf> nfs, std::uint32_t packet_bytes)
    : nfs_(std::move(nfs)),
      partitioner_(std::move(info), options, nfs_),
      demands_(nfs_, options.mode, partitioner_.info(), packet_bytes),
      parts_(nfs_.size()),
      source_(partitions, options.mode, partitioner_.info()) {}

Result<std::unique_ptr<GpuSharing>> GpuSharing::create(device::Device& device, chain::SharingOptions const& options,
                                                       SharedPartitions const& partitions, std::vector<Nf> nfs,
                                                       std::uint32_t packet_bytes) {
  std::unique_ptr<GpuSharing> sharing(new GpuSharing(device.info(), options, partitions, std::move(nfs), packet_bytes));
  CATENA_RETURN_IF_ERROR(sharing->partitioner_.prepare(device, sharing->source_.is_alone()));
  CATENA_RETURN_IF_ERROR(sharing->source_.join(sharing->partitioner_.shape(), [self = sharing.get()] {
    return self->demands_.demands(self->partitioner_.shape());
  }));
  CATENA_ASSIGN_OR_RETURN(std::vector<share::Part> parts, sharing->source_.parts());
  CATENA_ASSIGN_OR_RETURN(sharing->first_bounds_, sharing->partitioner_.bounds_for(device, parts));
  sharing->parts_.begin(std::move(parts));
  return sharing;
}

void GpuSharing::start(std::function<Traffic()> traffic, bool returns) {
  returns_ = returns;
  first_bounds_.clear();
  demands_.start(std::move(traffic));
}

std::chrono::milliseconds GpuSharing::period() const { return source_.is_given() ? kGivenPeriod : kPeriod; }

std::chrono::milliseconds GpuSharing::look(Pause& pause) {
  if (is_over()) {
    spdlog::warn("NFs no longer share {}: it is out of use", partitioner_.info().name);
    source_.leave();
    return kNever;
  }
  const Status followed = follow(pause);
  source_.report(parts_.used());
  if (followed.ok()) {
    failures_ = 0;
    return period();
  }
  if (failures_++ == 0) {
    spdlog::warn("NFs keep their SM partitions of {} until the next successful update: {}", partitioner_.info().name,
                 std::string(followed.message()));
  }
  constexpr int kMaxDoublings = 12;
  return std::min(period() * (1 << std::min(failures_, kMaxDoublings)), kMaxDelay);
}

/// Takes other parts where there are some. As NfParts::hand_out(), and as PartSource::look(), whose parts are taken all
/// the same.
Status GpuSharing::follow(Pause& pause) {
  Status looked = source_.look();
  CATENA_ASSIGN_OR_RETURN(const std::vector<share::Part> parts, source_.parts());
  if (parts_.is_due(parts)) {
    looked.Update(parts_.hand_out(parts, partitioner_, pause));
  }
  return looked;
}

Result<std::vector<kernel::LaunchBounds>> GpuSharing::bounds_on(device::Device& device) {
  device::DeviceInfo const& before = partitioner_.info();
  if (device.info().compute_units != before.compute_units) {
    return absl::FailedPreconditionError(concat("the chain shared ", before.name, " with ", before.compute_units,
                                                " compute units, and the device is now ", device.info().name, " with ",
                                                device.info().compute_units, ": apply it again"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<share::Part> parts, source_.parts());
  CATENA_ASSIGN_OR_RETURN(std::vector<kernel::LaunchBounds> bounds, partitioner_.bounds_for(device, parts));
  parts_.restore(parts);
  return bounds;
}

std::string GpuSharing::describe(Allocation const& part) const {
  return concat(part.nf, ": ", partitioner_.describe(part.units), ", at most ", part.launch_packets,
                " packets per launch");
}

std::vector<GpuSharing::Allocation> GpuSharing::allocations() const {
  std::vector<Allocation> all;
  for (NfParts::Held const& held : parts_.held()) {
    const std::size_t nf = all.size();
    all.push_back({nfs_[nf].name, held.part.share.sms, partitioner_.launch_packets(nf, held.part.share), held.is_used});
  }
  return all;
}

}  // namespace catena::runtime
