// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/device.hpp"

#include <chrono>

namespace catena::device::cuda {

/// Ready when its mark has its number, which the stream writes behind everything in front of the event: to look costs
/// nobody anything, while a question to the driver takes a lock that those who enqueue work need. The driver is asked
/// now and then all the same, for work that fails never gets as far as the mark.
class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, MarkedEvent const& event);
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;
  ~CudaEvent() override { device_->give_back_event(event_); }
  Result<bool> ready() override;

 private:
  CudaDevice* device_;
  MarkedEvent event_;
  std::chrono::steady_clock::time_point next_question_;
};

}  // namespace catena::device::cuda
