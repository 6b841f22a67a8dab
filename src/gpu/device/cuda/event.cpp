// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/event.hpp"

#include "gpu/device/backend.hpp"

#include <cmath>

namespace catena::device::cuda {

Result<bool> CudaEvent::ready() {
  CATENA_CUDA_ENTER(*device_);
  const CUresult code = device_->driver().cuEventQuery(event_);
  if (code == CUDA_ERROR_NOT_READY) {
    return false;
  }
  CATENA_RETURN_IF_ERROR(device_->check(code, "cuEventQuery", __FILE__, __LINE__));
  return true;
}

Result<std::chrono::nanoseconds> CudaEvent::since(Event& earlier) {
  auto const& from = static_cast<CudaEvent&>(earlier);
  if (!keeps_time_ || !from.keeps_time_) {
    return not_a_timestamp();
  }
  CATENA_CUDA_ENTER(*device_);
  constexpr double kNsPerMs = 1e6;
  float milliseconds = 0;
  const CUresult code = device_->driver().cuEventElapsedTime(&milliseconds, from.event_, event_);
  if (code == CUDA_ERROR_NOT_READY || code == CUDA_ERROR_INVALID_HANDLE) {  // the latter: of a recording that never ran
    return not_reached();
  }
  CATENA_RETURN_IF_ERROR(device_->check(code, "cuEventElapsedTime", __FILE__, __LINE__));
  return std::chrono::nanoseconds(std::llround(milliseconds * kNsPerMs));
}

}  // namespace catena::device::cuda
