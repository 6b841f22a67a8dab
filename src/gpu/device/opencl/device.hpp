// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include "gpu/device/health.hpp"
#include "gpu/device/opencl/error.hpp"
#include "gpu/device/opencl/handle.hpp"
#include "gpu/device/opencl/toolchain.hpp"

#include <optional>
#include <string>
#include <vector>

namespace catena::device::opencl {

/// The program formats that a device accepts; tried in this order.
struct Routes {
  std::string source_standard;         ///< -cl-std for C++ for OpenCL source; empty: the driver does not accept it
  bool spirv = false;                  ///< the driver accepts SPIR-V
  bool bitcode = false;                ///< the driver accepts LLVM bitcode (PoCL)
  std::optional<Toolchain> toolchain;  ///< needed by spirv and bitcode
};

/// A device as listed by the ICD loader.
struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  /// Kernels see host writes to an unmapped CL_MEM_USE_HOST_PTR buffer, and the host sees kernel writes. OpenCL 3.0
  /// (5.2.1) does not guarantee that: an implementation may keep a copy in device memory. It holds if the device is
  /// this machine's CPU and the pointer is aligned to CL_DEVICE_MEM_BASE_ADDR_ALIGN, because the buffer then is the
  /// pointer (PoCL: pocl_driver_alloc_mem_obj; Intel's guide, "Mapping Memory Objects (USE_HOST_PTR)"). GPUs sharing
  /// the CPU's memory may still cache it, and a CPU reporting no unified memory need not be this machine's.
  /// Fine-grained system SVM would be a guarantee, but PoCL 3.1 does not report it.
  bool works_in_host_memory = false;
  DeviceInfo info;
  Routes routes;
};

/// All devices that kernels can be compiled for. Unavailable if no such device exists: the text lists each device with
/// its missing requirement.
Result<std::vector<Found>> find_devices();

class OpenClDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(Found found);

  DeviceInfo const& info() const override { return found_.info; }
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

  cl_context context() const { return context_.get(); }
  cl_device_id native() const { return found_.device; }
  Health& health() { return health_; }
  /// to_status(); a fatal code also takes the device out of use.
  Status check(cl_int code, std::string_view call, const char* file, int line);

 private:
  OpenClDevice(Found found, Handle<cl_context> context) : found_(std::move(found)), context_(std::move(context)) {}
  Result<Binary> compile_source(ProgramSource const& source);
  Result<Binary> compile_through_spirv(ProgramSource const& source);
  Result<Binary> device_binary(cl_program program);

  Found found_;
  Handle<cl_context> context_;
  Health health_;
};

}  // namespace catena::device::opencl

/// CATENA_CL_TRY for a device: a fatal error takes `device` out of use.
#define CATENA_CL_TRY_ON(device, call) CATENA_RETURN_IF_ERROR((device).check((call), #call, __FILE__, __LINE__))
