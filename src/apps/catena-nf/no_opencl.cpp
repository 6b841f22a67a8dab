// SPDX-License-Identifier: Apache-2.0
// An NF's process has no device of its own, and no library that could look for one: with these in place of OpenCL's
// loader the linker leaves that out. A function that is missing here the linker finds in the loader, and a test finds
// the loader in the process.

// They answer that there is no device, and no object. Who asks begins with clGetPlatformIDs(), and goes no further.
#define CATENA_NO_DEVICE(name) \
  extern "C" int name();       \
  int name() { return -1; /* CL_DEVICE_NOT_FOUND */ }
#define CATENA_NO_OBJECT(name) \
  extern "C" void* name();     \
  void* name() { return nullptr; }

CATENA_NO_DEVICE(clBuildProgram)
CATENA_NO_DEVICE(clEnqueueBarrierWithWaitList)
CATENA_NO_DEVICE(clEnqueueFillBuffer)
CATENA_NO_DEVICE(clEnqueueMapBuffer)
CATENA_NO_DEVICE(clEnqueueMarkerWithWaitList)
CATENA_NO_DEVICE(clEnqueueNDRangeKernel)
CATENA_NO_DEVICE(clEnqueueReadBuffer)
CATENA_NO_DEVICE(clEnqueueReadBufferRect)
CATENA_NO_DEVICE(clEnqueueUnmapMemObject)
CATENA_NO_DEVICE(clEnqueueWriteBuffer)
CATENA_NO_DEVICE(clEnqueueWriteBufferRect)
CATENA_NO_DEVICE(clFinish)
CATENA_NO_DEVICE(clFlush)
CATENA_NO_DEVICE(clGetDeviceIDs)
CATENA_NO_DEVICE(clGetDeviceInfo)
CATENA_NO_DEVICE(clGetEventInfo)
CATENA_NO_DEVICE(clGetEventProfilingInfo)
CATENA_NO_DEVICE(clGetKernelInfo)
CATENA_NO_DEVICE(clGetPlatformIDs)
CATENA_NO_DEVICE(clGetPlatformInfo)
CATENA_NO_DEVICE(clGetProgramBuildInfo)
CATENA_NO_DEVICE(clGetProgramInfo)
CATENA_NO_DEVICE(clReleaseCommandQueue)
CATENA_NO_DEVICE(clReleaseContext)
CATENA_NO_DEVICE(clReleaseEvent)
CATENA_NO_DEVICE(clReleaseKernel)
CATENA_NO_DEVICE(clReleaseMemObject)
CATENA_NO_DEVICE(clReleaseProgram)
CATENA_NO_DEVICE(clSetKernelArg)
CATENA_NO_DEVICE(clWaitForEvents)

CATENA_NO_OBJECT(clCreateBuffer)
CATENA_NO_OBJECT(clCreateCommandQueueWithProperties)
CATENA_NO_OBJECT(clCreateContext)
CATENA_NO_OBJECT(clCreateKernel)
CATENA_NO_OBJECT(clCreateProgramWithBinary)
CATENA_NO_OBJECT(clCreateProgramWithIL)
CATENA_NO_OBJECT(clCreateProgramWithSource)
