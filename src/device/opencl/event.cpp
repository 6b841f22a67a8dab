// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/event.hpp"

namespace catena::device::opencl {

Result<bool> OpenClEvent::ready() {
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

}  // namespace catena::device::opencl
