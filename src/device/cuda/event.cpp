// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/event.hpp"

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

}  // namespace catena::device::cuda
