// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/event.hpp"

#include "gpu/device/backend.hpp"

namespace catena::device::opencl {

Result<Handle<cl_event>> enqueue_marker(OpenClDevice& device, cl_command_queue queue) {
  CATENA_RETURN_IF_ERROR(device.failed());
  cl_event event = nullptr;
  CATENA_CL_TRY_ON(device, clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event));
  return Handle<cl_event>(event);
}

Result<bool> OpenClEvent::ready() {
  if (event_.get() == nullptr) {
    return false;
  }
  cl_int state = CL_QUEUED;
  CATENA_CL_TRY_ON(*device_,
                   clGetEventInfo(event_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr));
  if (state < 0) {
    // The command ended abnormally. OpenCL does not say what is left of the device, so it counts as lost.
    const Status status = to_status(state, "work on the device", __FILE__, __LINE__);
    device_->health().fail(absl::UnavailableError(std::string(status.message())));
    return device_->failed();
  }
  if (state != CL_COMPLETE) {
    return false;
  }
  // Asking for the state does not order memory (OpenCL 3.0, 5.11); waiting for an event that is complete does.
  cl_event event = event_.get();
  CATENA_CL_TRY_ON(*device_, clWaitForEvents(1, &event));
  return true;
}

Result<cl_ulong> OpenClEvent::reached() {
  CATENA_ASSIGN_OR_RETURN(const bool done, ready());
  if (!done) {
    return not_reached();
  }
  cl_ulong at = 0;
  CATENA_CL_TRY_ON(*device_, clGetEventProfilingInfo(event_.get(), CL_PROFILING_COMMAND_END, sizeof at, &at, nullptr));
  return at;
}

Result<std::chrono::nanoseconds> OpenClEvent::since(Event& earlier) {
  auto& from = static_cast<OpenClEvent&>(earlier);
  if (!is_timestamp_ || !from.is_timestamp_) {
    return not_a_timestamp();
  }
  CATENA_ASSIGN_OR_RETURN(const cl_ulong begin, from.reached());
  CATENA_ASSIGN_OR_RETURN(const cl_ulong end, reached());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(end) - static_cast<std::int64_t>(begin));
}

}  // namespace catena::device::opencl
