// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/program.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/binary.hpp"
#include "gpu/device/cuda/memory.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstring>

namespace catena::device::cuda {

namespace {

/// Arguments as the driver wants them: a pointer to each. Must not outlive them.
class Parameters {
 public:
  explicit Parameters(std::span<const KernelArgument> arguments)
      : addresses_(arguments.size()), pointers_(arguments.size()) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (Buffer* const* buffer = std::get_if<Buffer*>(&arguments[i]); buffer != nullptr) {
        addresses_[i] = *buffer == nullptr ? 0 : static_cast<CudaBuffer*>(*buffer)->native();
        pointers_[i] = &addresses_[i];
      } else {
        // the driver copies the bytes during the call and does not write to them
        pointers_[i] = const_cast<std::byte*>(std::get<std::span<const std::byte>>(arguments[i]).data());
      }
    }
  }
  Parameters(Parameters const&) = delete;
  Parameters& operator=(Parameters const&) = delete;
  void** data() { return pointers_.data(); }

 private:
  /// More than the arguments of most kernels, so that a launch allocates nothing.
  static constexpr std::size_t kUsual = 24;

  absl::InlinedVector<CUdeviceptr, kUsual> addresses_;
  absl::InlinedVector<void*, kUsual> pointers_;
};

Result<std::uint32_t> attribute(CudaDevice& device, CUfunction function, CUfunction_attribute which) {
  int value = 0;
  CATENA_CUDA_TRY_ON(device, cuFuncGetAttribute(&value, which, function));
  return static_cast<std::uint32_t>(value);
}

std::optional<std::vector<std::size_t>> argument_bytes(Driver const& driver, CUfunction function) {
  if (driver.cuFuncGetParamInfo == nullptr) {
    return std::nullopt;
  }
  std::vector<std::size_t> sizes;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  // the first index that the kernel does not have is answered by CUDA_ERROR_INVALID_VALUE
  while (driver.cuFuncGetParamInfo(function, sizes.size(), &offset, &bytes) == CUDA_SUCCESS) {
    sizes.push_back(bytes);
  }
  return sizes;
}

Result<KernelSignature> signature_of(CudaDevice& device, CUfunction function) {
  KernelSignature signature;
  signature.argument_bytes = argument_bytes(device.driver(), function);
  CATENA_ASSIGN_OR_RETURN(signature.max_group_size,
                          attribute(device, function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  CATENA_ASSIGN_OR_RETURN(const std::uint32_t fixed, attribute(device, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  // More than 48 KiB must be asked for; asking takes nothing away from launches that use less.
  signature.max_local_bytes = device.info().local_memory_bytes - std::min(fixed, device.info().local_memory_bytes);
  CATENA_CUDA_TRY_ON(device, cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                static_cast<int>(signature.max_local_bytes)));
  return signature;
}

std::size_t bytes_of(KernelArgument const& argument) {
  const auto* bytes = std::get_if<std::span<const std::byte>>(&argument);
  return bytes == nullptr ? sizeof(CUdeviceptr) : bytes->size();
}

}  // namespace

Result<Binary> CudaDevice::compile(ProgramSource const& source) {
  CATENA_RETURN_IF_ERROR(failed());
  return compile_cuda(source, info_.target);
}

Result<std::unique_ptr<Program>> CudaDevice::load(std::span<const std::byte> binary) {
  CATENA_ASSIGN_OR_RETURN(const BinaryView view, unwrap(binary));
  if (view.kind != BinaryKind::kCubin) {
    return absl::InvalidArgumentError(concat("a ", to_string(view.kind), " program is not for CUDA devices"));
  }
  CATENA_CUDA_ENTER(*this);
  // the driver reads the image as an ELF file in memory: give it the alignment of one
  std::vector<std::uint64_t> image((view.payload.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  if (image.empty()) {
    return absl::InvalidArgumentError("an empty program");
  }
  std::memcpy(image.data(), view.payload.data(), view.payload.size());
  CUmodule module = nullptr;
  const CUresult code = driver().cuModuleLoadData(&module, image.data());
  if (const Status status = check(code, "cuModuleLoadData", __FILE__, __LINE__); !status.ok()) {
    return Status(status.code(), concat(std::string(status.message()), ", on ", info_.name, " (", info_.target, ", ",
                                        info_.driver, ")"));
  }
  return std::make_unique<CudaProgram>(*this, module);
}

CudaProgram::~CudaProgram() {
  if (!device_->failed().ok()) {
    return;
  }
  const ContextScope scope(*device_);
  device_->driver().cuModuleUnload(module_);
}

Result<Kernel*> CudaProgram::kernel(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) {
    return known->second.get();
  }
  CATENA_CUDA_ENTER(*device_);
  std::string key(name);
  CUfunction function = nullptr;
  const CUresult code = device_->driver().cuModuleGetFunction(&function, module_, key.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) {
    return absl::NotFoundError(concat("the program has no kernel '", name,
                                      "' (cuModuleGetFunction: CUDA_ERROR_NOT_FOUND, ", static_cast<int>(code), ")"));
  }
  CATENA_RETURN_IF_ERROR(device_->check(code, "cuModuleGetFunction", __FILE__, __LINE__));
  CATENA_ASSIGN_OR_RETURN(KernelSignature signature, signature_of(*device_, function));
  auto owned = std::make_unique<CudaKernel>(*device_, function, key, std::move(signature));
  return kernels_.emplace(std::move(key), std::move(owned)).first->second.get();
}

Status CudaKernel::check_launch(LaunchShape const& shape, std::span<const KernelArgument> arguments) const {
  if (shape.group_size > signature_.max_group_size || shape.local_bytes > signature_.max_local_bytes) {
    return absl::InvalidArgumentError(concat("launch: kernel '", name_, "' takes groups of at most ",
                                             signature_.max_group_size, " work-items with ", signature_.max_local_bytes,
                                             " bytes of local memory; asked for ", shape.group_size, " with ",
                                             shape.local_bytes));
  }
  if (!signature_.argument_bytes) {
    return absl::OkStatus();
  }
  std::vector<std::size_t> const& wanted = *signature_.argument_bytes;
  if (wanted.size() != arguments.size()) {
    return absl::InvalidArgumentError(
        concat("launch: kernel '", name_, "' takes ", wanted.size(), " arguments; given ", arguments.size()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (wanted[i] != bytes_of(arguments[i])) {
      return absl::InvalidArgumentError(concat("launch: argument ", i, " of kernel '", name_, "' has ", wanted[i],
                                               " bytes; given ", bytes_of(arguments[i])));
    }
  }
  return absl::OkStatus();
}

Status CudaKernel::enqueue(CUstream stream, LaunchShape const& shape, std::span<const KernelArgument> arguments) const {
  const SizedArguments sized(arguments, shape);
  CATENA_RETURN_IF_ERROR(check_launch(shape, sized.get()));
  Parameters parameters(sized.get());
  CATENA_CUDA_TRY_ON(*device_, cuLaunchKernel(function_, shape.groups, 1, 1, shape.group_size, 1, 1, shape.local_bytes,
                                              stream, parameters.data(), nullptr));
  return absl::OkStatus();
}

Result<CUgraphNode> CudaKernel::add_to(CUgraph graph, CUgraphNode previous, LaunchShape const& shape,
                                       std::span<const KernelArgument> arguments) const {
  const SizedArguments sized(arguments, shape);
  CATENA_RETURN_IF_ERROR(check_launch(shape, sized.get()));
  Parameters parameters(sized.get());
  CUDA_KERNEL_NODE_PARAMS call{};
  call.func = function_;
  call.gridDimX = shape.groups;
  call.gridDimY = call.gridDimZ = 1;
  call.blockDimX = shape.group_size;
  call.blockDimY = call.blockDimZ = 1;
  call.sharedMemBytes = shape.local_bytes;
  call.kernelParams = parameters.data();
  CUgraphNode node = nullptr;
  CATENA_CUDA_TRY_ON(*device_, cuGraphAddKernelNode(&node, graph, &previous, previous == nullptr ? 0 : 1, &call));
  return node;
}

}  // namespace catena::device::cuda
