// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_parts.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

namespace catena::runtime {
namespace {

/// How often a stage is asked whether it has taken its binding.
constexpr std::chrono::microseconds kOfferPeriod{100};

}  // namespace

nf_process::GpuPart as_given(share::Part const& part) {
  return {static_cast<std::uint16_t>(part.first), static_cast<std::uint16_t>(part.share.sms),
          part.share.packets_per_sm};
}

void NfParts::add(std::size_t nf, ProcessPart& part) {
  elsewhere_[nf] = &part;
  part.give(as_given(parts_[nf]));
}

Status NfParts::hand_out(std::vector<share::Part> const& parts, GpuPartitioner& partitioner, Pause& pause) {
  give(parts);
  {
    const std::scoped_lock lock(mutex_);
    is_mixed_ = true;
  }
  std::map<device::Device*, std::vector<kernel::LaunchBounds>> bounds;  // shards may have one each
  for (std::size_t nf = 0; nf < stages_.size(); ++nf) {
    for (DeviceStage* const stage : stages_[nf]) {
      if (!stage->device_status().ok()) {
        continue;
      }
      device::Device& device = stage->device();
      if (!bounds.contains(&device)) {
        CATENA_ASSIGN_OR_RETURN(bounds[&device], partitioner.bounds_for(device, parts));
      }
      CATENA_ASSIGN_OR_RETURN(const bool has_ended, hand_to(*stage, bounds[&device][nf], pause));
      if (has_ended) {
        return absl::OkStatus();
      }
    }
  }
  set(parts, false);
  changes_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

/// True if `pause` ended in between.
Result<bool> NfParts::hand_to(DeviceStage& stage, kernel::LaunchBounds const& bounds, Pause& pause) {
  Result<std::unique_ptr<DeviceBinding>> binding = stage.attach(bounds);
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

void NfParts::restore(std::vector<share::Part> const& parts) {
  give(parts);
  const bool has_others = std::ranges::any_of(stages_, [](std::vector<DeviceStage*> const& of_nf) {
    return std::ranges::any_of(of_nf, [](DeviceStage const* stage) { return stage->device_status().ok(); });
  });
  set(parts, has_others && (is_mixed_ || parts != parts_));
}

std::vector<share::Part> NfParts::used() const {
  return is_mixed_ || is_lost() ? std::vector<share::Part>(parts_.size()) : parts_;
}

std::vector<NfParts::Held> NfParts::held() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Held> all;
  for (std::size_t nf = 0; nf < parts_.size(); ++nf) {
    const bool is_used =
        elsewhere_[nf] != nullptr ? elsewhere_[nf]->taken() == as_given(parts_[nf]) : !is_mixed_ && !has_lost(nf);
    all.push_back({parts_[nf], is_used});
  }
  return all;
}

/// To NFs that are elsewhere: they take theirs in their own time.
void NfParts::give(std::vector<share::Part> const& parts) {
  for (std::size_t nf = 0; nf < stages_.size(); ++nf) {
    if (elsewhere_[nf] != nullptr) {
      elsewhere_[nf]->give(as_given(parts[nf]));
    }
  }
}

void NfParts::set(std::vector<share::Part> parts, bool is_mixed) {
  const std::scoped_lock lock(mutex_);
  parts_ = std::move(parts);
  is_mixed_ = is_mixed;
}

bool NfParts::has_lost(std::size_t nf) const {
  return std::ranges::any_of(stages_[nf], [](DeviceStage const* stage) { return !stage->device_status().ok(); });
}

bool NfParts::is_lost() const {
  for (std::size_t nf = 0; nf < stages_.size(); ++nf) {
    if (has_lost(nf)) {
      return true;
    }
  }
  return false;
}

}  // namespace catena::runtime
