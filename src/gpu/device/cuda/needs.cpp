// SPDX-License-Identifier: Apache-2.0
// The needs of a process that opens this backend's devices.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

#include "base/core/process_needs.hpp"
#include "gpu/device/cuda/driver.hpp"
#include "gpu/device/cuda/toolchain.hpp"

namespace catena::device {

ProcessNeeds needs_cuda();

namespace {

namespace fs = std::filesystem;

/// The nodes of GPUs and of parts of them (MIG), for computing alone: not those of displays, switches and profilers.
void add_nodes(ProcessNeeds& needs) {
  const auto is_gpu = [](std::string_view name) {
    constexpr std::string_view kPrefix = "nvidia";
    return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
           std::ranges::all_of(name.substr(kPrefix.size()), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  const auto add_from = [&needs](fs::path const& folder, auto const& is_wanted) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->is_character_file(error) && is_wanted(at->path().filename().string())) {
        needs.devices.push_back(at->path());
      }
    }
  };
  add_from("/dev",
           [&is_gpu](std::string const& name) { return name == "nvidiactl" || name == "nvidia-uvm" || is_gpu(name); });
  add_from("/dev/nvidia-caps", [](std::string const& /*name*/) { return true; });
}

/// The driver's numbers are those of its sources' nv-ioctl-numbers.h and uvm_linux_ioctl.h.
constexpr std::array<IoctlRequests, 4> kRequests{{{0xFF00, 'F' << 8},  // of a GPU and of nvidiactl
                                                  {0xFFFFFF00, 0},     // of nvidia-uvm, which numbers them from 0 on
                                                  {0xFFFFFFFF, 0x30000001},    // its first one
                                                  {0xFFFFFFFF, 0x30000002}}};  // its last one

/// Shows `folder`, unless it is below /usr, which is there.
void show(fs::path const& folder, ProcessNeeds& needs) {
  if (!folder.empty() && !folder.string().starts_with("/usr/")) {
    needs.files.push_back({folder, {}});
  }
}

/// The folder from which the loader takes the driver's library; empty: there is none.
fs::path driver_folder() {
  void* const library = dlopen(cuda::kDriverLibrary, RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    return {};
  }
  std::error_code error;
  return fs::canonical(map->l_name, error).parent_path();
}

}  // namespace

ProcessNeeds needs_cuda() {
  constexpr std::uint64_t kScratch = std::uint64_t{256} << 20U;
  constexpr std::uint64_t kMemory = std::uint64_t{4} << 30U;
  constexpr std::uint32_t kThreads = 32;
  ProcessNeeds needs;
  add_nodes(needs);
  needs.requests.assign(kRequests.begin(), kRequests.end());
  if (std::error_code error; fs::exists("/sys/module/nvidia/version", error)) {
    needs.files.push_back({"/sys/module/nvidia/version", {}});
  }
  if (const fs::path folder = driver_folder(); !folder.empty()) {
    show(folder, needs);
    needs.environment.emplace_back("LD_LIBRARY_PATH", folder.string());
  }
  if (const fs::path home = cuda::toolchain_home(); !home.empty()) {
    show(home, needs);
    needs.environment.emplace_back("CATENA_CUDA_HOME", home.string());
  }
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
    if (const char* value = std::getenv(name); value != nullptr) {
      needs.environment.emplace_back(name, value);
    }
  }
  needs.environment.emplace_back("CUDA_CACHE_PATH", fs::path(ProcessNeeds::kScratch) / "cuda");
  needs.scratch_bytes = kScratch;
  needs.memory_bytes = kMemory;
  needs.threads = kThreads;
  needs.reserves_addresses = true;  // for the memory of all GPUs and of the machine
  needs.listens = true;             // where other processes could ask the driver for its descriptors
  return needs;
}

}  // namespace catena::device
