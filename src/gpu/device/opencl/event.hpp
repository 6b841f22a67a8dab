// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/opencl/device.hpp"

namespace catena::device::opencl {

/// Enqueues an event after all work enqueued before.
Result<Handle<cl_event>> enqueue_marker(OpenClDevice& device, cl_command_queue queue);

class OpenClEvent final : public Event {
 public:
  OpenClEvent(OpenClDevice& device, Handle<cl_event> event, bool is_timestamp)
      : device_(&device), event_(std::move(event)), is_timestamp_(is_timestamp) {}
  /// Replaces the reported event. An event of a recording gets a new one in each run, and has no event before the
  /// first.
  void set(Handle<cl_event> event) { event_ = std::move(event); }
  cl_event native() const { return event_.get(); }
  Result<bool> ready() override;
  Result<std::chrono::nanoseconds> since(Event& earlier) override;

 private:
  /// Time at which the event was reached, in ns of the device's clock. FailedPrecondition: it was not reached yet.
  Result<cl_ulong> reached();

  OpenClDevice* device_;
  Handle<cl_event> event_;
  bool is_timestamp_;
};

}  // namespace catena::device::opencl
