// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>

#include <CL/cl.h>

/// Owners of OpenCL objects.
namespace catena::device::opencl {

struct Releaser {
  void operator()(cl_context context) const { clReleaseContext(context); }
  void operator()(cl_command_queue queue) const { clReleaseCommandQueue(queue); }
  void operator()(cl_mem memory) const { clReleaseMemObject(memory); }
  void operator()(cl_program program) const { clReleaseProgram(program); }
  void operator()(cl_kernel kernel) const { clReleaseKernel(kernel); }
  void operator()(cl_event event) const { clReleaseEvent(event); }
};

template <typename Native>
using Handle = std::unique_ptr<std::remove_pointer_t<Native>, Releaser>;

}  // namespace catena::device::opencl
