// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

#include <cuda.h>

/// The CUDA driver's functions, resolved at run time: the program starts on machines without libcuda.so.1.
namespace catena::device::cuda {

inline constexpr const char* kDriverLibrary = "libcuda.so.1";

// cuda.h defines macros for some names (cuMemAlloc -> cuMemAlloc_v2), so the resolved symbol is always the version
// declared in the header. All of these exist since CUDA 11.1.
#define CATENA_CUDA_FUNCTIONS(X) \
  X(cuInit)                      \
  X(cuDriverGetVersion)          \
  X(cuGetErrorName)              \
  X(cuGetErrorString)            \
  X(cuDeviceGet)                 \
  X(cuDeviceGetAttribute)        \
  X(cuDeviceGetCount)            \
  X(cuDeviceGetName)             \
  X(cuDeviceTotalMem)            \
  X(cuDevicePrimaryCtxRetain)    \
  X(cuDevicePrimaryCtxRelease)   \
  X(cuCtxPushCurrent)            \
  X(cuCtxPopCurrent)             \
  X(cuCtxGetStreamPriorityRange) \
  X(cuMemAlloc)                  \
  X(cuMemFree)                   \
  X(cuMemHostAlloc)              \
  X(cuMemFreeHost)               \
  X(cuMemHostRegister)           \
  X(cuMemHostUnregister)         \
  X(cuMemHostGetDevicePointer)   \
  X(cuMemcpyHtoDAsync)           \
  X(cuMemcpyDtoHAsync)           \
  X(cuMemcpy2DAsync)             \
  X(cuMemsetD8Async)             \
  X(cuStreamCreateWithPriority)  \
  X(cuStreamDestroy)             \
  X(cuEventCreate)               \
  X(cuEventDestroy)              \
  X(cuEventRecord)               \
  X(cuStreamWaitEvent)           \
  X(cuEventQuery)                \
  X(cuModuleLoadData)            \
  X(cuModuleUnload)              \
  X(cuModuleGetFunction)         \
  X(cuFuncGetAttribute)          \
  X(cuFuncSetAttribute)          \
  X(cuLaunchKernel)              \
  X(cuGraphCreate)               \
  X(cuGraphDestroy)              \
  X(cuGraphAddEventRecordNode)   \
  X(cuGraphAddKernelNode)        \
  X(cuGraphInstantiate)          \
  X(cuGraphExecDestroy)          \
  X(cuGraphUpload)               \
  X(cuGraphLaunch)

struct Driver {
#define CATENA_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  CATENA_CUDA_FUNCTIONS(CATENA_CUDA_MEMBER)
#undef CATENA_CUDA_MEMBER
  /// Resolved by the name present in every driver: the header may mean cuEventElapsedTime_v2, which is newer (12.8).
  decltype(&::cuEventElapsedTime) cuEventElapsedTime = nullptr;
  decltype(&::cuFuncGetParamInfo) cuFuncGetParamInfo = nullptr;  ///< null before CUDA 12.4
  // Green contexts: cuGreenCtxCreate is null if the driver lacks one of these functions (before CUDA 12.4).
  decltype(&::cuDeviceGetDevResource) cuDeviceGetDevResource = nullptr;
  decltype(&::cuDevSmResourceSplitByCount) cuDevSmResourceSplitByCount = nullptr;
  decltype(&::cuDevResourceGenerateDesc) cuDevResourceGenerateDesc = nullptr;
  decltype(&::cuGreenCtxCreate) cuGreenCtxCreate = nullptr;
  decltype(&::cuGreenCtxDestroy) cuGreenCtxDestroy = nullptr;
  decltype(&::cuCtxFromGreenCtx) cuCtxFromGreenCtx = nullptr;
  std::string version;  ///< "NVIDIA 580.65.06, CUDA 13.0"
};

/// The driver of this process. The first call opens and initializes it; it is never closed. Any thread.
/// Unavailable: libcuda.so.1 is missing, is too old, or finds no GPU. The text names the cause and the remedy.
Result<Driver const*> driver();

/// The Status for a failed call, with the code, its name and its source position. OK for CUDA_SUCCESS.
Status to_status(Driver const& driver, CUresult code, std::string_view call, const char* file, int line);

/// True for errors after which every call in this process's context fails: the device is lost for this process.
bool is_fatal(CUresult code);

}  // namespace catena::device::cuda

/// Returns a Status from the enclosing function if a driver call fails.
#define CATENA_CUDA_TRY(driver_, call) \
  CATENA_RETURN_IF_ERROR(::catena::device::cuda::to_status((driver_), (driver_).call, #call, __FILE__, __LINE__))
