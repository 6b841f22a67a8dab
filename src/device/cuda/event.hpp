// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/device.hpp"

namespace catena::device::cuda {

class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, CUevent event) : device_(&device), event_(event) {}
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;
  ~CudaEvent() override { device_->give_back_event(event_); }
  Result<bool> ready() override;

 private:
  CudaDevice* device_;
  CUevent event_;
};

}  // namespace catena::device::cuda
