// SPDX-License-Identifier: Apache-2.0
// Partitions of a GPU that change while packets run.
#include "pipeline/gpu_sharing.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

namespace catena::runtime {
namespace {

/// How often it is looked whether there are other parts.
constexpr std::chrono::milliseconds kPeriod = share::PartitionPlan::kPeriod;
/// The same if another process assigns them, as that costs little.
constexpr std::chrono::milliseconds kGivenPeriod{20};
/// How often a stage is asked whether it has taken its binding.
constexpr std::chrono::microseconds kOfferPeriod{100};
/// What fails is tried again after twice the time, up to this.
constexpr std::chrono::milliseconds kMaxDelay{30'000};

}  // namespace

void GpuSharing::add(std::size_t nf, ProcessPart& part) {
  elsewhere_[nf] = &part;
  part.give(as_given(parts_[nf]));
}

void GpuSharing::start(std::function<Traffic()> traffic, bool returns) {
  returns_ = returns;
  first_bounds_.clear();
  const std::scoped_lock lock(traffic_mutex_);
  traffic_ = std::move(traffic);
  meter_.start(traffic_(), meter_.packet_bytes(), std::chrono::steady_clock::now());
}

void GpuSharing::stop() {
  const std::scoped_lock lock(traffic_mutex_);
  traffic_ = nullptr;
}

std::chrono::milliseconds GpuSharing::period() const { return partitions_.given ? kGivenPeriod : kPeriod; }

std::chrono::milliseconds GpuSharing::look(Pause& pause) {
  if (is_over()) {
    spdlog::warn("NFs no longer share {}: it is out of use", info_.name);
    member_.reset();
    return kNever;
  }
  const Status followed = follow(pause);
  tell();
  if (followed.ok()) {
    failures_ = 0;
    return period();
  }
  if (failures_++ == 0) {
    spdlog::warn("NFs keep their SM partitions of {} until the next successful update: {}", info_.name,
                 std::string(followed.message()));
  }
  constexpr int kMaxDoublings = 12;
  return std::min(period() * (1 << std::min(failures_, kMaxDoublings)), kMaxDelay);
}

/// Takes other parts where there are some. As hand_out(), and as PartitionPlan::look(), whose parts are taken all the
/// same.
Status GpuSharing::follow(Pause& pause) {
  Status looked = partitions_.given ? absl::OkStatus() : partition_plan_->look();
  CATENA_ASSIGN_OR_RETURN(const std::vector<share::Part> parts, parts_now());
  if (parts != parts_ || (is_mixed_ && !is_lost())) {
    looked.Update(hand_out(parts, pause));
  }
  return looked;
}

/// Hands parts to the stages, one after another. Those that have lost their device have them when it returns. An error:
/// stages may have parts of before and of now.
Status GpuSharing::hand_out(std::vector<share::Part> const& parts, Pause& pause) {
  give(parts);
  {
    const std::scoped_lock lock(parts_mutex_);
    is_mixed_ = true;
  }
  std::map<device::Device*, std::vector<kernel::LaunchBounds>> bounds;  // shards may have one each
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    for (DeviceStage* const stage : stages_[nf]) {
      if (!stage->device_status().ok()) {
        continue;
      }
      device::Device& device = stage->device();
      if (!bounds.contains(&device)) {
        CATENA_ASSIGN_OR_RETURN(bounds[&device], bounds_for(device, parts));
      }
      CATENA_ASSIGN_OR_RETURN(const bool has_ended, hand_to(*stage, bounds[&device][nf], pause));
      if (has_ended) {
        return absl::OkStatus();
      }
    }
  }
  set_parts(parts, false);
  changes_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

/// True where `pause` ended in between.
Result<bool> GpuSharing::hand_to(DeviceStage& stage, kernel::LaunchBounds const& bounds, Pause& pause) {
  Result<std::unique_ptr<DeviceStage::DeviceBinding>> binding = stage.attach(bounds);
  if (!binding.ok()) {
    return stage.device_status().ok() ? Result<bool>(binding.status()) : Result<bool>(false);
  }
  // of a device that is out of use the stage takes nothing more, and its recovery makes the next binding
  stage.bind(*std::move(binding));
  while (stage.device_status().ok() && !stage.has_taken_binding()) {
    if (!pause.sleep(kOfferPeriod)) {
      return true;
    }
  }
  // what it had before ends here, and not where packets wait
  if (stage.has_taken_binding()) {
    stage.unbind().reset();
  }
  return false;
}

Result<std::vector<kernel::LaunchBounds>> GpuSharing::bounds_on(device::Device& device) {
  if (device.info().compute_units != info_.compute_units) {
    return absl::FailedPreconditionError(concat("the chain shared ", info_.name, " with ", info_.compute_units,
                                                " compute units, and the device is now ", device.info().name, " with ",
                                                device.info().compute_units, ": apply it again"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<share::Part> parts, parts_now());
  CATENA_ASSIGN_OR_RETURN(std::vector<kernel::LaunchBounds> bounds, bounds_for(device, parts));
  give(parts);
  const bool has_others = std::ranges::any_of(stages_, [](std::vector<DeviceStage*> const& of_nf) {
    return std::ranges::any_of(of_nf, [](DeviceStage const* stage) { return stage->device_status().ok(); });
  });
  set_parts(parts, has_others && (is_mixed_ || parts != parts_));
  return bounds;
}

/// To NFs that are elsewhere: they take theirs in their own time.
void GpuSharing::give(std::vector<share::Part> const& parts) {
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    if (elsewhere_[nf] != nullptr) {
      elsewhere_[nf]->give(as_given(parts[nf]));
    }
  }
}

void GpuSharing::set_parts(std::vector<share::Part> parts, bool is_mixed) {
  const std::scoped_lock lock(parts_mutex_);
  parts_ = std::move(parts);
  is_mixed_ = is_mixed;
}

/// Says to who gives the parts which ones the NFs have: none without a device.
void GpuSharing::tell() {
  if (!partitions_.given) {
    return;
  }
  std::vector<share::Part> now = is_mixed_ || is_lost() ? std::vector<share::Part>(nfs_.size()) : parts_;
  if (now != told_) {
    partitions_.given->taken(now);
    told_ = std::move(now);
  }
}

bool GpuSharing::has_lost(std::size_t nf) const {
  return std::ranges::any_of(stages_[nf], [](DeviceStage const* stage) { return !stage->device_status().ok(); });
}

bool GpuSharing::is_lost() const {
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    if (has_lost(nf)) {
      return true;
    }
  }
  return false;
}

}  // namespace catena::runtime
