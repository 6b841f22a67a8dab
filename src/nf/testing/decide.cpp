// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/decide.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <chrono>

namespace catena::nf::testing {
namespace {

constexpr std::chrono::seconds kDeviceLimit{120};

std::uint32_t largest_unit(std::vector<packet::Batch> const& units) {
  std::uint32_t largest = 1;
  for (packet::Batch const& unit : units) {
    largest = std::max(largest, unit.size());
  }
  return largest;
}

Status run_on_device(Instance& instance, std::vector<packet::Batch> const& units, device::Device& device,
                     RunOptions const& options) {
  CATENA_ASSIGN_OR_RETURN(KernelSide side, instance.nf().kernel_side());
  CATENA_ASSIGN_OR_RETURN(const auto device_nf,
                          kernel::DeviceNf::create(device, std::move(side.spec), instance.launch_plan(), side.state));
  hostcopy::HostMover mover;
  CATENA_ASSIGN_OR_RETURN(
      const auto launch,
      DeviceBatch::create(instance, *device_nf, {largest_unit(units) * options.units_per_launch}, mover));
  const auto finish = [&]() -> Status {
    CATENA_RETURN_IF_ERROR(launch->submit());
    const auto limit = std::chrono::steady_clock::now() + kDeviceLimit;
    while (true) {
      CATENA_ASSIGN_OR_RETURN(const bool done, launch->poll());
      if (done) {
        return absl::OkStatus();
      }
      if (std::chrono::steady_clock::now() > limit) {
        return absl::DeadlineExceededError(
            concat(instance.name(), " on ", device.info().name, " did not finish in ", kDeviceLimit.count(), " s"));
      }
    }
  };
  for (packet::Batch const& unit : units) {
    if (launch->room() < unit.size()) {
      CATENA_RETURN_IF_ERROR(finish());
    }
    launch->add(unit);
  }
  return launch->empty() ? absl::OkStatus() : finish();
}

}  // namespace

std::vector<packet::Batch> cut(PacketStore& store, RunOptions const& options) {
  std::vector<packet::Batch> units;
  std::size_t first = 0;
  for (std::size_t i = 0; first < store.size(); ++i) {
    const std::size_t wanted =
        options.unit_sizes.empty() ? options.unit_size : options.unit_sizes[i % options.unit_sizes.size()];
    units.push_back(store.batch(first, std::min(wanted, store.size() - first)));
    first += units.back().size();
  }
  return units;
}

Status decide(Instance& instance, std::vector<packet::Batch> const& units, device::Device* device,
              RunOptions const& options) {
  if (device != nullptr) {
    return run_on_device(instance, units, *device, options);
  }
  for (packet::Batch const& unit : units) {
    instance.process(unit);
  }
  return absl::OkStatus();
}

}  // namespace catena::nf::testing
