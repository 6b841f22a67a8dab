// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string_view>

#include <CL/cl.h>

namespace catena::device::opencl {

/// "CL_INVALID_VALUE"; "unknown OpenCL error" for a number missing in the headers.
std::string_view error_name(cl_int code);

/// The Status for a failed call; the text has the call, the code, its name and the source position.
/// OK for CL_SUCCESS.
Status to_status(cl_int code, std::string_view call, const char* file, int line);

/// True for codes after which the device is unusable.
bool is_fatal(cl_int code);

}  // namespace catena::device::opencl

/// Returns a Status from the enclosing function if an OpenCL call with an error code fails.
#define CATENA_CL_TRY(call) \
  CATENA_RETURN_IF_ERROR(::catena::device::opencl::to_status((call), #call, __FILE__, __LINE__))
