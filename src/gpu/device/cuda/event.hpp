// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"

namespace catena::device::cuda {

class CudaEvent final : public Event {
 public:
  /// Owns `event`, which came from CudaDevice::take_event(keeps_time).
  CudaEvent(CudaDevice& device, CUevent event, bool keeps_time)
      : device_(&device), event_(event), keeps_time_(keeps_time) {}
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;
  ~CudaEvent() override { device_->give_back_event(event_, keeps_time_); }
  CUevent native() const { return event_; }
  Result<bool> ready() override;
  Result<std::chrono::nanoseconds> since(Event& earlier) override;

 private:
  CudaDevice* device_;
  CUevent event_;
  bool keeps_time_;
};

}  // namespace catena::device::cuda
