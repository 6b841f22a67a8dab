// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/opencl/device.hpp"

namespace catena::device::opencl {

class OpenClBuffer final : public Buffer {
 public:
  OpenClBuffer(Handle<cl_mem> memory, std::size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  std::size_t size() const override { return bytes_; }
  cl_mem native() const { return memory_.get(); }

 private:
  Handle<cl_mem> memory_;
  std::size_t bytes_;
};

}  // namespace catena::device::opencl
