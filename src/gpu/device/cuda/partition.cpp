// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/partition.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::device::cuda {
namespace {

/// The SMs of the device in groups as small as it makes them; what fills none is left out. Clusters of thread blocks,
/// which no kernel here has, would need larger groups.
Result<std::vector<CUdevResource>> groups_of(CudaDevice& device, CUdevice native) {
  CUdevResource all{};
  CATENA_CUDA_TRY_ON(device, cuDeviceGetDevResource(native, &all, CU_DEV_RESOURCE_TYPE_SM));
  constexpr unsigned int kSmall = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
  unsigned int count = 0;
  CATENA_CUDA_TRY_ON(device, cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, kSmall, 1));
  std::vector<CUdevResource> groups(count);
  CUdevResource rest{};
  CATENA_CUDA_TRY_ON(device, cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, kSmall, 1));
  groups.resize(count);
  return groups;
}

}  // namespace

Result<std::vector<std::unique_ptr<Partition>>> CudaDevice::divide(std::span<const std::uint32_t> compute_units) {
  CATENA_CUDA_ENTER(*this);
  if (driver().cuGreenCtxCreate == nullptr) {
    return absl::UnimplementedError(
        concat(info_.name, " cannot be divided: green contexts came with CUDA 12.4, this is ", info_.driver));
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<CUdevResource> groups, groups_of(*this, device_));
  std::vector<std::unique_ptr<Partition>> parts;
  auto next = groups.begin();
  for (const std::uint32_t wanted : compute_units) {
    std::vector<CUdevResource> own;
    for (std::uint32_t units = 0; units < wanted && next != groups.end(); ++next) {
      own.push_back(*next);
      units += next->sm.smCount;
    }
    std::uint32_t units = 0;
    for (CUdevResource const& group : own) {
      units += group.sm.smCount;
    }
    if (wanted == 0 || units < wanted) {
      return absl::InvalidArgumentError(concat("a partition of ", wanted, " compute units: ", info_.name, " has ",
                                               info_.compute_units, ", in ", groups.size(), " groups of ",
                                               groups.empty() ? 0 : groups.front().sm.smCount,
                                               ", and partitions have whole groups"));
    }
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Partition> part, CudaPartition::create(*this, std::move(own)));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<std::unique_ptr<Partition>> CudaPartition::create(CudaDevice& device, std::vector<CUdevResource> groups) {
  std::unique_ptr<CudaPartition> part(new CudaPartition(device));
  CUdevResourceDesc description = nullptr;
  CATENA_CUDA_TRY_ON(device,
                     cuDevResourceGenerateDesc(&description, groups.data(), static_cast<unsigned int>(groups.size())));
  CATENA_CUDA_TRY_ON(device,
                     cuGreenCtxCreate(&part->green_, description, device.native(), CU_GREEN_CTX_DEFAULT_STREAM));
  CATENA_CUDA_TRY_ON(device, cuCtxFromGreenCtx(&part->context_, part->green_));
  for (CUdevResource const& group : groups) {
    part->compute_units_ += group.sm.smCount;
  }
  return part;
}

CudaPartition::~CudaPartition() {
  if (green_ != nullptr && device_->failed().ok()) {
    device_->driver().cuGreenCtxDestroy(green_);
  }
}

}  // namespace catena::device::cuda
