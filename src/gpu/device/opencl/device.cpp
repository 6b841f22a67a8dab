// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/device.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_join.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <CL/cl_ext.h>

namespace catena::device::opencl {

namespace {

std::string text_of(cl_platform_id platform, cl_platform_info what) {
  std::size_t bytes = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) {
    return {};
  }
  std::string text(bytes, '\0');
  clGetPlatformInfo(platform, what, bytes, text.data(), nullptr);
  text.resize(bytes - 1);  // the driver counts the closing NUL
  return text;
}

std::string text_of(cl_device_id device, cl_device_info what) {
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) {
    return {};
  }
  std::string text(bytes, '\0');
  clGetDeviceInfo(device, what, bytes, text.data(), nullptr);
  text.resize(bytes - 1);
  return text;
}

template <typename T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

/// The LLVM inside PoCL, from "... PoCL 3.1+debian ... LLVM 15.0.6 ..."; 0 for other platforms.
int pocl_llvm_version(std::string_view platform_version) {
  constexpr std::string_view kMark = "LLVM ";
  const std::size_t at = platform_version.find(kMark);
  if (platform_version.find("PoCL") == std::string_view::npos || at == std::string_view::npos) {
    return 0;
  }
  const std::string_view number = platform_version.substr(at + kMark.size());
  int version = 0;
  std::from_chars(number.data(), number.data() + number.size(), version);
  return version;
}

/// Newest clang whose SPIR-V is worth trying on drivers that do not tell which LLVM they hold.
constexpr int kNewestForSpirv = 15;

/// The newest -cl-std of C++ for OpenCL that the driver compiles; empty if it compiles none. Found by trial: drivers
/// that can do it do not say so.
std::string cxx_standard(cl_device_id device) {
  cl_int code = CL_SUCCESS;
  const Handle<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code));
  if (code != CL_SUCCESS) {
    return {};
  }
  const char* text =
      "template <typename T> T twice(T x) { return x + x; }\n"
      "__kernel void trial(__global unsigned* at) { unsigned* any = at; *any = twice(*any); }\n";
  for (const char* standard : {"CLC++2021", "CLC++"}) {
    const Handle<cl_program> program(clCreateProgramWithSource(context.get(), 1, &text, nullptr, &code));
    if (code == CL_SUCCESS && clBuildProgram(program.get(), 1, &device, concat("-cl-std=", standard).c_str(), nullptr,
                                             nullptr) == CL_SUCCESS) {
      return standard;
    }
  }
  return {};
}

/// Fills found.routes and found.info.target. Unavailable if no route leads to the device.
Status find_routes(Found& found) {
  Routes& routes = found.routes;
  const int pocl = pocl_llvm_version(text_of(found.platform, CL_PLATFORM_VERSION));
  const std::string il = text_of(found.device, CL_DEVICE_IL_VERSION);
  routes.source_standard = cxx_standard(found.device);
  routes.spirv = absl::StrContains(il, "SPIR-V");
  routes.bitcode = pocl > 0;

  Status toolchain_status;
  if (routes.spirv || routes.bitcode) {
    Result<Toolchain> toolchain = find_toolchain(pocl > 0 ? pocl : kNewestForSpirv);
    toolchain_status = toolchain.status();
    if (toolchain.ok()) {
      routes.toolchain = *std::move(toolchain);
    }
  }
  routes.spirv = routes.spirv && routes.toolchain && !routes.toolchain->llvm_spirv.empty();
  routes.bitcode = routes.bitcode && routes.toolchain;

  std::string names;
  const auto add = [&names](std::string const& name) { names += concat(names.empty() ? "" : "; ", name); };
  if (!routes.source_standard.empty()) {
    add(concat(routes.source_standard, " source"));
  }
  if (routes.spirv) {
    add(concat("SPIR-V, clang ", routes.toolchain->version));
  }
  if (routes.bitcode) {
    add(concat("spir64 bitcode, LLVM ", pocl, ", clang ", routes.toolchain->version));
  }
  if (names.empty()) {
    return toolchain_status.ok()
               ? absl::UnavailableError("the driver takes neither C++ for OpenCL source, SPIR-V nor LLVM bitcode")
               : toolchain_status;
  }
  found.info.target = names;
  return absl::OkStatus();
}

Found describe(cl_platform_id platform, cl_device_id device) {
  Found found;
  found.platform = platform;
  found.device = device;
  DeviceInfo& info = found.info;
  info.is_cpu = (number_of<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  found.works_in_host_memory = info.is_cpu && number_of<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  info.backend = "opencl";
  info.name = text_of(device, CL_DEVICE_NAME);
  info.driver = concat(text_of(platform, CL_PLATFORM_NAME), ", ", text_of(platform, CL_PLATFORM_VERSION), ", driver ",
                       text_of(device, CL_DRIVER_VERSION));
  info.compute_units = number_of<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.memory_bytes = number_of<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.local_memory_bytes = static_cast<std::uint32_t>(number_of<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  info.max_group_size = static_cast<std::uint32_t>(number_of<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  return found;
}

constexpr std::string_view kNoDriver =
    "no OpenCL driver is installed; PoCL runs kernels on the CPU: apt-get install pocl-opencl-icd";

/// PoCL offers no platform where it cannot make the folder of its cache (pocl_cache_init_topdir); then this says so.
std::string cache_problem() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value != nullptr ? value : "");
  };
  fs::path folder = variable("POCL_CACHE_DIR");
  if (folder.empty()) {
    const fs::path caches = variable("XDG_CACHE_HOME");
    folder = (caches.empty() ? variable("HOME") / ".cache" : caches) / "pocl" / "kcache";
  }
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? concat("; or one is, and PoCL cannot make its cache, ", folder.string(), " (", error.message(),
                        "): export POCL_CACHE_DIR=FOLDER_YOU_CAN_WRITE")
               : std::string();
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) {
    return {};  // a platform without devices is an error there
  }
  std::vector<cl_device_id> devices(count);
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) {
    return {};
  }
  return devices;
}

}  // namespace

Result<std::vector<Found>> find_devices() {
  cl_uint count = 0;
  const cl_int code = clGetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) {
    return absl::UnavailableError(
        concat(kNoDriver, " (clGetPlatformIDs: ", error_name(code), ", ", code, ")", cache_problem()));
  }
  CATENA_CL_TRY(code);
  std::vector<cl_platform_id> platforms(count);
  CATENA_CL_TRY(clGetPlatformIDs(count, platforms.data(), nullptr));

  std::vector<Found> usable;
  std::vector<std::string> refused;
  for (cl_platform_id platform : platforms) {
    for (cl_device_id device : devices_of(platform)) {
      Found found = describe(platform, device);
      if (const Status status = find_routes(found); status.ok()) {
        found.info.ordinal = static_cast<std::uint32_t>(usable.size());
        usable.push_back(std::move(found));
      } else {
        refused.push_back(concat(found.info.name, " (", found.info.driver, "): ", std::string(status.message())));
      }
    }
  }
  if (usable.empty()) {
    return absl::UnavailableError(refused.empty() ? concat(kNoDriver, cache_problem()) : absl::StrJoin(refused, "; "));
  }
  return usable;
}

Result<std::unique_ptr<Device>> OpenClDevice::create(Found found) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM,
      reinterpret_cast<cl_context_properties>(found.platform),
      0,
  };
  cl_int code = CL_SUCCESS;
  Handle<cl_context> context(clCreateContext(properties, 1, &found.device, nullptr, nullptr, &code));
  CATENA_RETURN_IF_ERROR(to_status(code, "clCreateContext", __FILE__, __LINE__));
  return std::unique_ptr<Device>(new OpenClDevice(std::move(found), std::move(context)));
}

Status OpenClDevice::check(cl_int code, std::string_view call, const char* file, int line) {
  Status status = to_status(code, call, file, line);
  if (is_fatal(code)) {
    health_.fail(status);
  }
  return status;
}

}  // namespace catena::device::opencl

namespace catena::device {

Probe probe_opencl() {
  Probe probe{"opencl", {}, absl::OkStatus()};
  const Result<std::vector<opencl::Found>> found = opencl::find_devices();
  probe.status = found.status();
  if (found.ok()) {
    for (opencl::Found const& device : *found) {
      probe.devices.push_back(device.info);
    }
  }
  return probe;
}

Result<std::unique_ptr<Device>> open_opencl(int ordinal) {
  CATENA_ASSIGN_OR_RETURN(std::vector<opencl::Found> found, opencl::find_devices());
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= found.size()) {
    return absl::UnavailableError(
        concat("no OpenCL device number ", ordinal, "; found ", found.size(), ", counted from 0"));
  }
  return opencl::OpenClDevice::create(std::move(found[static_cast<std::size_t>(ordinal)]));
}

}  // namespace catena::device
