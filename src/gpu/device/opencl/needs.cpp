// SPDX-License-Identifier: Apache-2.0
// The needs of a process that opens this backend's devices, by PoCL, which has no node in /dev.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/core/process_needs.hpp"

namespace catena::device {

ProcessNeeds needs_opencl();

ProcessNeeds needs_opencl() {
  namespace fs = std::filesystem;
  constexpr std::uint64_t kScratch = std::uint64_t{256} << 20U;
  constexpr std::uint64_t kMemory = std::uint64_t{2} << 30U;
  constexpr std::uint32_t kThreads = 32;  // and programs
  constexpr const char* kVendors = "OCL_ICD_VENDORS";
  const char* const own = std::getenv(kVendors);
  ProcessNeeds needs;
  if (own != nullptr) {
    needs.environment.emplace_back(kVendors, own);
  }
  const fs::path vendors = own == nullptr ? "/etc/OpenCL/vendors" : own;
  if (std::error_code error; vendors.is_absolute() && fs::exists(vendors, error)) {
    needs.files.push_back({vendors, {}});
  }
  needs.environment.emplace_back("PATH", "/usr/local/bin:/usr/bin:/bin");  // of the compiler, and of PoCL's linker
  needs.environment.emplace_back("POCL_CACHE_DIR", fs::path(ProcessNeeds::kScratch) / "pocl");
  needs.scratch_bytes = kScratch;
  needs.memory_bytes = kMemory;
  needs.threads = kThreads + std::thread::hardware_concurrency();
  needs.starts_programs = true;
  return needs;
}

}  // namespace catena::device
