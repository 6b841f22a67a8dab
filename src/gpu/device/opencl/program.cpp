// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/program.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/binary.hpp"
#include "gpu/device/opencl/memory.hpp"
#include "gpu/device/source.hpp"

#include <absl/strings/str_join.h>

#include <algorithm>

namespace catena::device::opencl {

namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{32} * 1024;

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) {
    return {};
  }
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log.resize(std::min(bytes - 1, kMaxLogBytes));
  return log;
}

/// Builds. The caller must drop a program that did not build: PoCL crashes when one is used.
Status build(cl_program program, cl_device_id device, std::string const& options) {
  const cl_int code = clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) {
    return absl::OkStatus();
  }
  const Status status = to_status(code, "clBuildProgram", __FILE__, __LINE__);
  return Status(code == CL_BUILD_PROGRAM_FAILURE ? absl::StatusCode::kInvalidArgument : status.code(),
                concat(std::string(status.message()), "\n", build_log(program, device)));
}

}  // namespace

/// What the driver made of a program that is built. It loads faster than what it was made from.
Result<Binary> OpenClDevice::device_binary(cl_program program) {
  std::size_t bytes = 0;
  CATENA_CL_TRY_ON(*this, clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr));
  std::vector<std::byte> payload(bytes);
  void* target = payload.data();
  CATENA_CL_TRY_ON(*this, clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof target, &target, nullptr));
  return wrap(BinaryKind::kDeviceBinary, payload);
}

Result<Binary> OpenClDevice::compile_source(ProgramSource const& source) {
  const std::string text = flatten(source);
  const char* start = text.c_str();
  const std::size_t length = text.size();
  cl_int code = CL_SUCCESS;
  const Handle<cl_program> program(clCreateProgramWithSource(context(), 1, &start, &length, &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateProgramWithSource", __FILE__, __LINE__));
  CATENA_RETURN_IF_ERROR(build(program.get(), native(), concat("-cl-std=", found_.routes.source_standard)));
  return device_binary(program.get());
}

Result<Binary> OpenClDevice::compile_through_spirv(ProgramSource const& source) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::byte> spirv, compile_spirv(*found_.routes.toolchain, source));
  cl_int code = CL_SUCCESS;
  const Handle<cl_program> program(clCreateProgramWithIL(context(), spirv.data(), spirv.size(), &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateProgramWithIL", __FILE__, __LINE__));
  CATENA_RETURN_IF_ERROR(build(program.get(), native(), ""));
  return device_binary(program.get());
}

Result<Binary> OpenClDevice::compile(ProgramSource const& source) {
  CATENA_RETURN_IF_ERROR(failed());
  CATENA_RETURN_IF_ERROR(check_source(source));
  Routes const& routes = found_.routes;
  std::vector<Status> failures;
  const auto keep = [&failures](auto const& result) {
    if (!result.ok()) {
      failures.push_back(result.status());
    }
    return result.ok();
  };
  if (!routes.source_standard.empty()) {
    if (Result<Binary> binary = compile_source(source); keep(binary)) {
      return binary;
    }
  }
  if (routes.spirv) {
    if (Result<Binary> binary = compile_through_spirv(source); keep(binary)) {
      return binary;
    }
  }
  if (routes.bitcode) {
    if (Result<std::vector<std::byte>> bitcode = compile_bitcode(*routes.toolchain, source); keep(bitcode)) {
      return wrap(BinaryKind::kBitcode, *bitcode);
    }
  }
  // A wrong source fails on every route in the same way: one compiler's messages are enough.
  for (Status const& failure : failures) {
    if (absl::IsInvalidArgument(failure)) {
      return failure;
    }
  }
  return failures.front();
}

Result<std::unique_ptr<Program>> OpenClDevice::load(std::span<const std::byte> binary) {
  CATENA_RETURN_IF_ERROR(failed());
  CATENA_ASSIGN_OR_RETURN(const BinaryView view, unwrap(binary));
  const auto* bytes = reinterpret_cast<const unsigned char*>(view.payload.data());
  const std::size_t length = view.payload.size();
  if (view.kind != BinaryKind::kDeviceBinary && view.kind != BinaryKind::kBitcode) {
    return absl::InvalidArgumentError(concat("a ", to_string(view.kind), " program is not for OpenCL devices"));
  }
  cl_int code = CL_SUCCESS;
  cl_device_id device = native();
  Handle<cl_program> program(clCreateProgramWithBinary(context(), 1, &device, &length, &bytes, nullptr, &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateProgramWithBinary", __FILE__, __LINE__));
  CATENA_RETURN_IF_ERROR(build(program.get(), native(), ""));
  return std::make_unique<OpenClProgram>(*this, std::move(program));
}

Result<Kernel*> OpenClProgram::kernel(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) {
    return known->second.get();
  }
  std::string key(name);
  cl_int code = CL_SUCCESS;
  Handle<cl_kernel> kernel(clCreateKernel(program_.get(), key.c_str(), &code));
  if (code == CL_INVALID_KERNEL_NAME) {
    return absl::NotFoundError(
        concat("the program has no kernel '", name, "' (clCreateKernel: ", error_name(code), ", ", code, ")"));
  }
  CATENA_RETURN_IF_ERROR(device_->check(code, "clCreateKernel", __FILE__, __LINE__));
  cl_uint count = 0;
  CATENA_CL_TRY_ON(*device_, clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr));
  auto owned = std::make_unique<OpenClKernel>(*device_, std::move(kernel), key, count);
  return kernels_.emplace(std::move(key), std::move(owned)).first->second.get();
}

Status OpenClKernel::set_argument(cl_uint index, KernelArgument const& argument) {
  if (Buffer* const* buffer = std::get_if<Buffer*>(&argument); buffer != nullptr) {
    const cl_mem memory = *buffer == nullptr ? nullptr : static_cast<OpenClBuffer*>(*buffer)->native();
    CATENA_CL_TRY_ON(*device_, clSetKernelArg(kernel_.get(), index, sizeof memory, &memory));
    return absl::OkStatus();
  }
  const auto bytes = std::get<std::span<const std::byte>>(argument);
  CATENA_CL_TRY_ON(*device_, clSetKernelArg(kernel_.get(), index, bytes.size(), bytes.data()));
  return absl::OkStatus();
}

Status OpenClKernel::check(LaunchShape const& shape, std::span<const KernelArgument> arguments) const {
  if (!takes_local(arguments) && (argument_count_ != arguments.size() || shape.local_bytes != 0)) {
    return absl::InvalidArgumentError(concat("launch: kernel '", name_, "' takes ", argument_count_,
                                             " arguments, local memory included; given ", arguments.size(),
                                             shape.local_bytes == 0 ? "" : " and local memory"));
  }
  return absl::OkStatus();
}

Status OpenClKernel::enqueue(cl_command_queue queue, LaunchShape const& shape, std::span<const KernelArgument> given) {
  const SizedArguments sized(given, shape);
  const std::span<const KernelArgument> arguments = sized.get();
  CATENA_RETURN_IF_ERROR(check(shape, arguments));
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    CATENA_RETURN_IF_ERROR(set_argument(static_cast<cl_uint>(i), arguments[i]));
  }
  if (takes_local(arguments)) {
    // OpenCL has no local memory of no bytes
    const std::size_t bytes = std::max<std::size_t>(shape.local_bytes, 16);
    CATENA_CL_TRY_ON(*device_, clSetKernelArg(kernel_.get(), argument_count_ - 1, bytes, nullptr));
  }
  const std::size_t group_size = shape.group_size;
  const std::size_t global_size = group_size * shape.groups;
  CATENA_CL_TRY_ON(*device_, clEnqueueNDRangeKernel(queue, kernel_.get(), 1, nullptr, &global_size, &group_size, 0,
                                                    nullptr, nullptr));
  return absl::OkStatus();
}

}  // namespace catena::device::opencl
