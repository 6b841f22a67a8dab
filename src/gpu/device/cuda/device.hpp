// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include "gpu/device/cuda/driver.hpp"
#include "gpu/device/health.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace catena::device::cuda {

/// A GPU through its primary context, shared by all CudaDevices of this process: separate contexts would be time-sliced
/// on the GPU instead of running side by side.
class CudaDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(Driver const& driver, int ordinal);
  CudaDevice(CudaDevice const&) = delete;
  CudaDevice& operator=(CudaDevice const&) = delete;
  ~CudaDevice() override;

  DeviceInfo const& info() const override { return info_; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t bytes) override;
  Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) override;
  Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& options) override;
  Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* partition) override;
  Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> compute_units) override;
  Result<Binary> compile(ProgramSource const& source) override;
  Result<std::unique_ptr<Program>> load(std::span<const std::byte> binary) override;
  Status failed() const override { return health_.status(); }
  void abandon(Status const& reason) override { health_.fail(reason); }

  Driver const& driver() const { return *driver_; }
  CUdevice native() const { return device_; }
  CUcontext context() const { return context_; }
  Health& health() { return health_; }
  /// to_status(); a fatal error also takes the device out of use.
  Status check(CUresult code, std::string_view call, const char* file, int line);

  /// Events are created once and reused, so that no event is created while packets flow. The context must be current.
  /// Events with a time are pooled separately: events without a time are cheaper to record and to poll.
  Result<CUevent> take_event(bool keeps_time);
  void give_back_event(CUevent event, bool keeps_time);

 private:
  CudaDevice(Driver const& driver, CUdevice device, CUcontext context, DeviceInfo info)
      : driver_(&driver), device_(device), context_(context), info_(std::move(info)) {}

  Driver const* driver_;
  CUdevice device_;
  CUcontext context_;
  DeviceInfo info_;
  Health health_;
  std::mutex mutex_;
  std::vector<CUevent> idle_events_;
  std::vector<CUevent> idle_timestamps_;  ///< events with a time
};

/// Makes a device's context current on this thread for its lifetime, then restores the previous context.
class ContextScope {
 public:
  explicit ContextScope(CudaDevice& device) : ContextScope(device, device.context()) {}
  /// `context`: the device's context, or the context of one of its partitions.
  ContextScope(CudaDevice& device, CUcontext context);
  ContextScope(ContextScope const&) = delete;
  ContextScope& operator=(ContextScope const&) = delete;
  ~ContextScope();
  Status const& status() const { return status_; }

 private:
  CudaDevice* device_;
  Status status_;
};

Result<DeviceInfo> describe(Driver const& driver, CUdevice device, int ordinal);

}  // namespace catena::device::cuda

/// CATENA_CUDA_TRY for a device: a fatal error takes `device` out of use.
#define CATENA_CUDA_TRY_ON(device, call) \
  CATENA_RETURN_IF_ERROR((device).check((device).driver().call, #call, __FILE__, __LINE__))

/// Returns the Status of a failed device from the enclosing function. Otherwise the context is current until the end of
/// the enclosing block.
#define CATENA_CUDA_ENTER(target)                                           \
  CATENA_RETURN_IF_ERROR((target).failed());                                \
  const ::catena::device::cuda::ContextScope catena_context_scope_(target); \
  CATENA_RETURN_IF_ERROR(catena_context_scope_.status())
