// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/opencl/device.hpp"

namespace catena::device::opencl {

class OpenClEvent final : public Event {
 public:
  OpenClEvent(OpenClDevice& device, Handle<cl_event> event) : device_(&device), event_(std::move(event)) {}
  Result<bool> ready() override;

 private:
  OpenClDevice* device_;
  Handle<cl_event> event_;
};

}  // namespace catena::device::opencl
