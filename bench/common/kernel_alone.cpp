// SPDX-License-Identifier: Apache-2.0
#include "bench/common/kernel_alone.hpp"

#include <catena/core/text.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::chrono::seconds kKernelLimit{60};

}  // namespace

KernelAlone::KernelAlone(nf::Descriptor const& descriptor, std::unique_ptr<nf::Nf> nf,
                         std::span<const std::vector<std::uint8_t>> frames)
    : instance_(std::string(descriptor.type), descriptor, std::move(nf), nf::OnUnsupported::kPass, false),
      store_(frames) {}

Result<std::unique_ptr<KernelAlone>> KernelAlone::create(device::Device& device, nf::Descriptor const& descriptor,
                                                         std::unique_ptr<nf::Nf> nf,
                                                         std::span<const std::vector<std::uint8_t>> frames) {
  std::unique_ptr<KernelAlone> alone(new KernelAlone(descriptor, std::move(nf), frames));
  CATENA_RETURN_IF_ERROR(alone->start(device));
  return alone;
}

Status KernelAlone::start(device::Device& device) {
  CATENA_ASSIGN_OR_RETURN(nf::KernelSide side, instance_.nf().kernel_side());
  CATENA_ASSIGN_OR_RETURN(device_nf_,
                          kernel::DeviceNf::create(device, std::move(side.spec), instance_.launch_plan(), side.state));
  CATENA_ASSIGN_OR_RETURN(launch_,
                          kernel::Launch::create(*device_nf_, {static_cast<std::uint32_t>(store_.size())}, mover_));
  const packet::Batch packets = store_.all();
  instance_.select(packets, slots_);
  instance_.prepare(packets, slots_, aux_);
  launch_->begin();
  launch_->add(packets, slots_, aux_);
  CATENA_RETURN_IF_ERROR(launch_->submit());
  CATENA_RETURN_IF_ERROR(launch_->wait(kKernelLimit, instance_.name()));
  return launch_->faults().count == 0
             ? absl::OkStatus()
             : absl::DataLossError(concat(instance_.name(), ": its kernel read or wrote out of bounds"));
}

Status KernelAlone::run(std::uint32_t launches) {
  for (std::uint32_t i = 0; i < launches; ++i) {
    CATENA_RETURN_IF_ERROR(launch_->enqueue_kernel());
  }
  return launch_->wait(kKernelLimit, instance_.name());
}

}  // namespace catena::bench
