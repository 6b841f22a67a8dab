// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_source.hpp"

#include "pipeline/sharing_nf.hpp"

#include <catena/core/text.hpp>

#include <cstdint>
#include <utility>

namespace catena::runtime {

PartSource::PartSource(SharedPartitions const& partitions, share::Mode mode, device::DeviceInfo const& device)
    : is_alone_(partitions.plans == nullptr && !partitions.given),
      given_(partitions.given),
      plan_(is_alone_                     ? std::make_shared<share::PartitionPlan>(mode)
            : partitions.plans != nullptr ? partitions.plans->of(device::identity(device))
                                          : nullptr) {}

Status PartSource::join(share::GpuShape const& gpu, share::PartitionPlan::Demands demands) {
  gpu_ = gpu;
  if (!is_given()) {
    CATENA_ASSIGN_OR_RETURN(member_, plan_->join(gpu, std::move(demands)));
  }
  return absl::OkStatus();
}

Result<std::vector<share::Part>> PartSource::parts() const {
  if (!is_given()) {
    return member_->parts();
  }
  std::vector<share::Part> parts = given_->now();
  for (share::Part& part : parts) {
    if (part.share.batch() == 0) {
      part = {0, {gpu_.sms, kUnknownCost.max_packets_per_sm}};
    }
    if (std::uint64_t{part.first} + part.share.sms > gpu_.sms) {
      return absl::InvalidArgumentError(
          concat("a part of ", part.share.sms, " from ", part.first, " on, of ", gpu_.sms));
    }
  }
  return parts;
}

void PartSource::report(std::vector<share::Part> used) {
  if (is_given() && used != reported_) {
    given_->taken(used);
    reported_ = std::move(used);
  }
}

}  // namespace catena::runtime
