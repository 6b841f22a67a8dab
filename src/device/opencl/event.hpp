// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/opencl/device.hpp"

namespace catena::device::opencl {

/// An event after everything that was enqueued before.
Result<Handle<cl_event>> enqueue_marker(OpenClDevice& device, cl_command_queue queue);

class OpenClEvent final : public Event {
 public:
  OpenClEvent(OpenClDevice& device, Handle<cl_event> event, bool is_timestamp)
      : device_(&device), event_(std::move(event)), is_timestamp_(is_timestamp) {}
  /// What it tells of from now on: an event of a recording has a new one for each run, and none before the first.
  void set(Handle<cl_event> event) { event_ = std::move(event); }
  cl_event native() const { return event_.get(); }
  Result<bool> ready() override;
  Result<std::chrono::nanoseconds> since(Event& earlier) override;

 private:
  /// When it was reached, in ns of the device's clock. FailedPrecondition: it was not yet.
  Result<cl_ulong> reached();

  OpenClDevice* device_;
  Handle<cl_event> event_;
  bool is_timestamp_;
};

}  // namespace catena::device::opencl
