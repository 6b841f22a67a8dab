// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include "device/health.hpp"
#include "device/opencl/error.hpp"
#include "device/opencl/handle.hpp"
#include "device/opencl/toolchain.hpp"

#include <optional>
#include <string>
#include <vector>

namespace catena::device::opencl {

/// How kernels get to a device; tried in this order.
struct Routes {
  std::string source_standard;         ///< -cl-std for C++ for OpenCL source; empty: the driver does not take it
  bool spirv = false;                  ///< the driver takes SPIR-V
  bool bitcode = false;                ///< the driver takes LLVM bitcode (PoCL)
  std::optional<Toolchain> toolchain;  ///< what spirv and bitcode need
};

/// A device as the ICD loader lists it.
struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  /// Kernels see what the host writes to a CL_MEM_USE_HOST_PTR buffer that is not mapped, and the other way round.
  /// OpenCL 3.0 (5.2.1) promises that to nobody: an implementation may keep a copy in device memory. It is so where the
  /// device is this machine's CPU and the pointer is aligned as CL_DEVICE_MEM_BASE_ADDR_ALIGN says, because there the
  /// buffer is the pointer (PoCL: pocl_driver_alloc_mem_obj; Intel's guide, "Mapping Memory Objects (USE_HOST_PTR)").
  /// GPUs that share the CPU's memory may still hold it in caches of their own, and a CPU that reports no unified
  /// memory need not be this machine's. Fine-grained system SVM would be a promise, but PoCL 3.1 does not report it.
  bool works_in_host_memory = false;
  DeviceInfo info;
  Routes routes;
};

/// Every device that kernels can be compiled for. Unavailable if there is none: the text says for each device that is
/// there what it lacks.
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
  /// to_status(), and a code that means the end of the device takes it out of use.
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

/// CATENA_CL_TRY inside a device: `device` learns of errors that end it.
#define CATENA_CL_TRY_ON(device, call) CATENA_RETURN_IF_ERROR((device).check((call), #call, __FILE__, __LINE__))
