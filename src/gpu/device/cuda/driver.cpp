// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/driver.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

#include <fstream>
#include <string_view>

#include <dlfcn.h>

namespace catena::device::cuda {

namespace {

#define CATENA_CUDA_TEXT(name) #name
#define CATENA_CUDA_SYMBOL(name) CATENA_CUDA_TEXT(name)

/// What cuInit() saying `code` usually means on Linux, and what helps.
std::string_view advice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_NO_DEVICE:
      return "the driver is installed but sees no GPU; `nvidia-smi` tells more (in a container: start it with GPUs)";
    case CUDA_ERROR_UNKNOWN:
      return "often the kernel module nvidia-uvm is missing: `modprobe nvidia-uvm` or `nvidia-modprobe -u -c=0`";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the kernel module and libcuda.so.1 are of different versions: reboot after a driver update";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "start the NVIDIA fabric manager: `systemctl start nvidia-fabricmanager`";
    default:
      return "`nvidia-smi` tells more";
  }
}

/// The number of the kernel module, e.g. "580.65.06"; empty where it cannot be read.
std::string module_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  std::getline(file, version);
  return version;
}

Result<Driver> open_driver() {
  void* library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return absl::UnavailableError(
        concat("NVIDIA's driver library cannot be opened (", reason == nullptr ? kDriverLibrary : reason,
               "); with an NVIDIA GPU in this machine install its driver: apt-get install nvidia-driver libcuda1"));
  }
  Driver driver;
  const auto find = [library]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  };
#define CATENA_CUDA_FIND(name)                                                                             \
  if (!find(driver.name, CATENA_CUDA_SYMBOL(name))) {                                                      \
    return absl::UnavailableError(concat(kDriverLibrary, " has no ", CATENA_CUDA_SYMBOL(name),             \
                                         ": the NVIDIA driver is too old; install version 450 or newer")); \
  }
  CATENA_CUDA_FUNCTIONS(CATENA_CUDA_FIND)
#undef CATENA_CUDA_FIND
  if (!find(driver.cuEventElapsedTime, "cuEventElapsedTime")) {
    return absl::UnavailableError(concat(kDriverLibrary, " has no cuEventElapsedTime"));
  }
  find(driver.cuFuncGetParamInfo, CATENA_CUDA_SYMBOL(cuFuncGetParamInfo));
  if (!find(driver.cuDeviceGetDevResource, CATENA_CUDA_SYMBOL(cuDeviceGetDevResource)) ||
      !find(driver.cuDevSmResourceSplitByCount, CATENA_CUDA_SYMBOL(cuDevSmResourceSplitByCount)) ||
      !find(driver.cuDevResourceGenerateDesc, CATENA_CUDA_SYMBOL(cuDevResourceGenerateDesc)) ||
      !find(driver.cuGreenCtxDestroy, CATENA_CUDA_SYMBOL(cuGreenCtxDestroy)) ||
      !find(driver.cuCtxFromGreenCtx, CATENA_CUDA_SYMBOL(cuCtxFromGreenCtx)) ||
      !find(driver.cuGreenCtxCreate, CATENA_CUDA_SYMBOL(cuGreenCtxCreate))) {
    driver.cuGreenCtxCreate = nullptr;
  }

  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS) {
    const Status status = to_status(driver, code, "cuInit(0)", __FILE__, __LINE__);
    return absl::UnavailableError(concat(std::string(status.message()), "; ", advice(code)));
  }
  int number = 0;
  CATENA_CUDA_TRY(driver, cuDriverGetVersion(&number));
  const std::string module = module_version();
  driver.version =
      concat("NVIDIA ", module.empty() ? "driver" : module, ", CUDA ", number / 1000, ".", number % 1000 / 10);
  return driver;
}

}  // namespace

Result<Driver const*> driver() {
  static const Result<Driver> kOpened = open_driver();
  if (!kOpened.ok()) {
    return kOpened.status();
  }
  return &*kOpened;
}

bool is_fatal(CUresult code) {
  switch (code) {
    // cuda.h: "leaves the process in an inconsistent state", "cannot be used anymore"
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    // memory, link or driver gone
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

Status to_status(Driver const& driver, CUresult code, std::string_view call, const char* file, int line) {
  if (code == CUDA_SUCCESS) {
    return absl::OkStatus();
  }
  const char* name = nullptr;
  const char* description = nullptr;
  driver.cuGetErrorName(code, &name);
  driver.cuGetErrorString(code, &description);
  // the macro passes the whole call; its name is enough
  const std::string text = concat(call.substr(0, call.find('(')), ": ", name == nullptr ? "unknown CUDA error" : name,
                                  " (", static_cast<int>(code), description == nullptr ? "" : concat(", ", description),
                                  ") at ", source_position(file, line));
  if (is_fatal(code)) {
    return absl::UnavailableError(text);
  }
  switch (code) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return absl::UnavailableError(text);
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(text);
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace catena::device::cuda
