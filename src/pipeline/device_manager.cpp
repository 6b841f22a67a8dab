// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_manager.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace catena::runtime {

Result<std::unique_ptr<device::Device>> DeviceManager::open_one(device::DevicePreference const& choice,
                                                                std::string& why) const {
  return open_ ? open_(choice, &why) : device::open(choice, &why);
}

Status DeviceManager::open(std::vector<device::DevicePreference> choices) {
  choices_ = std::move(choices);
  for (device::DevicePreference const& choice : choices_) {
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device, open_one(choice, why_not_));
    if (!device) {
      if (choice.kind == device::DevicePreference::Kind::kNone) {
        why_not_ = "the device is 'none'";
      }
      opened_.clear();  // one that is missing is missed by the whole chain
      return absl::OkStatus();
    }
    opened_.push_back(std::move(device));
  }
  return absl::OkStatus();
}

void DeviceManager::close(std::string why_not) {
  opened_.clear();
  why_not_ = std::move(why_not);
}

Result<std::shared_ptr<device::Device>> DeviceManager::device_to_share(device::DevicePreference const& choice,
                                                                       bool is_used_elsewhere,
                                                                       chain::SharingOptions& options) const {
  std::shared_ptr<device::Device> device;
  if (!opened_.empty()) {
    device = opened_.front();
  } else if (open_ && is_used_elsewhere) {  // only to ask it for its parts
    std::string why;
    CATENA_ASSIGN_OR_RETURN(device, open_(choice, &why));
  }
  if (device != nullptr && !options.parts) {
    const auto part = device->divide(std::array{1U});
    if (!part.ok() && !absl::IsUnimplemented(part.status())) {
      return part.status();
    }
    options.parts = part.ok() ? share::Parts::kGreen : share::Parts::kBlocks;
  }
  return device;
}

Status DeviceManager::make_sides(std::size_t pools, MakeSide make) {
  make_side_ = std::move(make);
  // where each shard has a pool of its own, each has the twin of it, and tables beside it
  for (std::size_t i = 0; !opened_.empty() && i < std::max(opened_.size(), pools); ++i) {
    CATENA_ASSIGN_OR_RETURN(sides_.emplace_back(), make_side_(opened_[i % opened_.size()], i));
  }
  return absl::OkStatus();
}

Status DeviceManager::share(device::Device& device, chain::SharingOptions const& options,
                            SharedPartitions const& partitions, std::vector<std::size_t> positions,
                            std::vector<GpuSharing::Nf> nfs, std::uint32_t packet_bytes) {
  shared_by_ = std::move(positions);
  CATENA_ASSIGN_OR_RETURN(sharing_, GpuSharing::create(device, options, partitions, std::move(nfs), packet_bytes));
  return absl::OkStatus();
}

/// Its number among the NFs that share the device.
std::size_t DeviceManager::number_of(std::size_t position) const {
  return static_cast<std::size_t>(std::ranges::find(shared_by_, position) - shared_by_.begin());
}

void DeviceManager::add(std::size_t shard, DeviceStage& stage) {
  stages_.emplace_back(shard, &stage);
  if (sharing_ != nullptr) {
    sharing_->add(number_of(stage.position()), stage);
  }
}

void DeviceManager::add(std::size_t position, ProcessPart& part) { sharing_->add(number_of(position), part); }

void DeviceManager::return_lost() {
  if (!open_ || sides_.empty()) {
    return;
  }
  std::vector<DeviceRecovery::Part> parts;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    DeviceRecovery::Part part{sides_[i].get(), {}, [this, i] { return make_again(i); }};
    if (sharing_ != nullptr) {
      part.bounds = [this](device::Device& device) { return bounds_on(device); };
    }
    for (auto const& [shard, stage] : stages_) {
      if (shard % sides_.size() == i) {
        part.stages.push_back(stage);
      }
    }
    std::ranges::stable_sort(part.stages, std::ranges::greater{}, &DeviceStage::position);
    parts.push_back(std::move(part));
  }
  recovery_ = std::make_unique<DeviceRecovery>(std::move(parts));
}

Result<std::unique_ptr<DeviceSide>> DeviceManager::make_again(std::size_t side) const {
  std::string why;
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<device::Device> device, open_(choices_[side % choices_.size()], &why));
  if (device == nullptr) {
    return absl::UnavailableError(why);
  }
  return make_side_(std::move(device), side);
}

/// What launches of each NF of the chain take of a device that came back.
Result<std::vector<kernel::LaunchBounds>> DeviceManager::bounds_on(device::Device& device) {
  CATENA_ASSIGN_OR_RETURN(std::vector<kernel::LaunchBounds> shared, sharing_->bounds_on(device));
  std::vector<kernel::LaunchBounds> of_chain(shared_by_.back() + 1);
  for (std::size_t i = 0; i < shared.size(); ++i) {
    of_chain[shared_by_[i]] = std::move(shared[i]);
  }
  return of_chain;
}

bool DeviceManager::abandoned() const {
  return abandoned_before_ || std::ranges::any_of(stages_, [](auto const& each) { return each.second->abandoned(); });
}

}  // namespace catena::runtime
