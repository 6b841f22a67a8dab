// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/event.hpp"

#include <atomic>

namespace catena::device::cuda {

namespace {

constexpr std::chrono::microseconds kBetweenQuestions{200};

}  // namespace

CudaEvent::CudaEvent(CudaDevice& device, MarkedEvent const& event)
    : device_(&device), event_(event), next_question_(std::chrono::steady_clock::now() + kBetweenQuestions) {}

Result<bool> CudaEvent::ready() {
  if (event_.number != 0) {
    if (std::atomic_ref(*event_.mark).load(std::memory_order_acquire) == event_.number) {
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now < next_question_) {
      return false;
    }
    next_question_ = now + kBetweenQuestions;
  }
  CATENA_CUDA_ENTER(*device_);
  const CUresult code = device_->driver().cuEventQuery(event_.event);
  if (code == CUDA_ERROR_NOT_READY) {
    return false;
  }
  CATENA_RETURN_IF_ERROR(device_->check(code, "cuEventQuery", __FILE__, __LINE__));
  return true;
}

}  // namespace catena::device::cuda
