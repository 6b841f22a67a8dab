// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/device.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/cuda/toolchain.hpp"

#include <array>

namespace catena::device::cuda {

namespace {

Result<int> attribute(Driver const& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  CATENA_CUDA_TRY(driver, cuDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

Result<DeviceInfo> describe(Driver const& driver, CUdevice device, int ordinal) {
  DeviceInfo info;
  info.backend = "cuda";
  info.driver = driver.version;
  std::array<char, 256> name{};
  CATENA_CUDA_TRY(driver, cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device));
  info.name = name.data();
  std::size_t memory = 0;
  CATENA_CUDA_TRY(driver, cuDeviceTotalMem(&memory, device));
  info.memory_bytes = memory;
  CATENA_ASSIGN_OR_RETURN(const int major, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CATENA_ASSIGN_OR_RETURN(const int minor, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  info.target = concat("sm_", major, minor);
  CATENA_ASSIGN_OR_RETURN(const int units, attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  info.compute_units = static_cast<std::uint32_t>(units);
  CATENA_ASSIGN_OR_RETURN(const int local,
                          attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  info.local_memory_bytes = static_cast<std::uint32_t>(local);
  CATENA_ASSIGN_OR_RETURN(const int group, attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  info.max_group_size = static_cast<std::uint32_t>(group);
  info.ordinal = static_cast<std::uint32_t>(ordinal);
  return info;
}

Result<std::unique_ptr<Device>> CudaDevice::create(Driver const& driver, int ordinal) {
  int count = 0;
  CATENA_CUDA_TRY(driver, cuDeviceGetCount(&count));
  if (ordinal < 0 || ordinal >= count) {
    return absl::UnavailableError(concat("no CUDA device number ", ordinal, "; found ", count, ", counted from 0"));
  }
  CUdevice device = 0;
  CATENA_CUDA_TRY(driver, cuDeviceGet(&device, ordinal));
  CATENA_ASSIGN_OR_RETURN(DeviceInfo info, describe(driver, device, ordinal));
  CUcontext context = nullptr;
  CATENA_CUDA_TRY(driver, cuDevicePrimaryCtxRetain(&context, device));
  return std::unique_ptr<Device>(new CudaDevice(driver, device, context, std::move(info)));
}

CudaDevice::~CudaDevice() {
  if (!failed().ok()) {
    return;  // what hangs on the device would make the release wait for ever; the process's end releases it
  }
  {
    const ContextScope scope(*this);
    for (auto const* events : {&idle_events_, &idle_timestamps_}) {
      for (CUevent event : *events) {
        driver_->cuEventDestroy(event);
      }
    }
  }
  driver_->cuDevicePrimaryCtxRelease(device_);
}

Status CudaDevice::check(CUresult code, std::string_view call, const char* file, int line) {
  Status status = to_status(*driver_, code, call, file, line);
  if (is_fatal(code)) {
    health_.fail(status);
  }
  return status;
}

Result<CUevent> CudaDevice::take_event(bool keeps_time) {
  {
    const std::scoped_lock lock(mutex_);
    std::vector<CUevent>& idle = keeps_time ? idle_timestamps_ : idle_events_;
    if (!idle.empty()) {
      CUevent event = idle.back();
      idle.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  CATENA_CUDA_TRY_ON(*this, cuEventCreate(&event, keeps_time ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
  return event;
}

void CudaDevice::give_back_event(CUevent event, bool keeps_time) {
  const std::scoped_lock lock(mutex_);
  (keeps_time ? idle_timestamps_ : idle_events_).push_back(event);
}

ContextScope::ContextScope(CudaDevice& device, CUcontext context)
    : device_(&device),
      status_(device.check(device.driver().cuCtxPushCurrent(context), "cuCtxPushCurrent", __FILE__, __LINE__)) {}

ContextScope::~ContextScope() {
  if (status_.ok()) {
    CUcontext popped = nullptr;
    device_->driver().cuCtxPopCurrent(&popped);
  }
}

}  // namespace catena::device::cuda

namespace catena::device {

Probe probe_cuda() {
  const auto find = []() -> Result<std::vector<DeviceInfo>> {
    CATENA_ASSIGN_OR_RETURN(cuda::Driver const* driver, cuda::driver());
    CATENA_RETURN_IF_ERROR(cuda::check_toolchain());
    int count = 0;
    CATENA_CUDA_TRY(*driver, cuDeviceGetCount(&count));
    std::vector<DeviceInfo> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      CUdevice device = 0;
      CATENA_CUDA_TRY(*driver, cuDeviceGet(&device, ordinal));
      CATENA_ASSIGN_OR_RETURN(DeviceInfo info, cuda::describe(*driver, device, ordinal));
      devices.push_back(std::move(info));
    }
    if (devices.empty()) {
      return absl::UnavailableError(concat(driver->version, " sees no GPU; `nvidia-smi` tells more"));
    }
    return devices;
  };
  Result<std::vector<DeviceInfo>> devices = find();
  return {"cuda", devices.ok() ? *devices : std::vector<DeviceInfo>(), devices.status()};
}

Result<std::unique_ptr<Device>> open_cuda(int ordinal) {
  CATENA_ASSIGN_OR_RETURN(cuda::Driver const* driver, cuda::driver());
  CATENA_RETURN_IF_ERROR(cuda::check_toolchain());
  return cuda::CudaDevice::create(*driver, ordinal);
}

}  // namespace catena::device
