// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/toolchain.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "gpu/device/binary.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/source.hpp"

namespace catena::device {

namespace cuda {

namespace {

namespace fs = std::filesystem;

// NVRTC's interface as its manual gives it. It is declared here and not taken from nvrtc.h because that header comes
// only with the library, 90 MB that a machine without an NVIDIA GPU does not fetch.
using NvrtcHandle = struct NvrtcHandleTag*;
enum NvrtcResult : int {
  kNvrtcSuccess = 0,
  kNvrtcErrorOutOfMemory = 1,
  kNvrtcErrorInvalidOption = 5,
  kNvrtcErrorCompilation = 6,
};

// X(function, its parameters): each returns NvrtcResult.
#define CATENA_NVRTC_FUNCTIONS(X)                                                                \
  X(nvrtcVersion, int* major, int* minor)                                                        \
  X(nvrtcGetNumSupportedArchs, int* count)                                                       \
  X(nvrtcGetSupportedArchs, int* architectures)                                                  \
  X(nvrtcCreateProgram, NvrtcHandle* program, const char* source, const char* name, int headers, \
    const char* const* texts, const char* const* names)                                          \
  X(nvrtcDestroyProgram, NvrtcHandle* program)                                                   \
  X(nvrtcCompileProgram, NvrtcHandle program, int options, const char* const* texts)             \
  X(nvrtcGetCUBINSize, NvrtcHandle program, std::size_t* bytes)                                  \
  X(nvrtcGetCUBIN, NvrtcHandle program, char* cubin)                                             \
  X(nvrtcGetProgramLogSize, NvrtcHandle program, std::size_t* bytes)                             \
  X(nvrtcGetProgramLog, NvrtcHandle program, char* log)

struct Nvrtc {
  const char* (*nvrtcGetErrorString)(NvrtcResult result) = nullptr;
#define CATENA_NVRTC_MEMBER(name, ...) NvrtcResult (*name)(__VA_ARGS__) = nullptr;
  CATENA_NVRTC_FUNCTIONS(CATENA_NVRTC_MEMBER)
#undef CATENA_NVRTC_MEMBER
  std::string version;             ///< "13.0"
  std::vector<int> architectures;  ///< 75 .. 121, ascending
};

/// Newest first: an older NVRTC serves where it is all there is.
constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// Where `make install` puts NVRTC, for a program in bin/ and for libnca in lib/ or a folder of it.
std::vector<fs::path> installed_homes() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&installed_homes), &self) == 0 || self.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const fs::path folder = fs::canonical(self.dli_fname, error).parent_path();
  if (error) {
    return {};
  }
  return {folder.parent_path() / "lib" / "catena" / "cuda", folder.parent_path() / "catena" / "cuda",
          folder / "catena" / "cuda"};
}

/// Folders that may hold NVRTC, in the order of the search.
std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  const auto add = [&folders](fs::path const& home) {
    folders.push_back(home / "lib");
    folders.push_back(home / "lib64");
  };
  const auto add_from = [&add](const char* variable) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      add(home);
    }
  };
  add_from("CATENA_CUDA_HOME");
  for (fs::path const& home : installed_homes()) {
    add(home);
  }
  add(CATENA_CUDA_HOME);  // of the build
  add_from("CUDA_HOME");
  add_from("CUDA_PATH");
  add("/usr/local/cuda");
  add("/opt/cuda");
  return folders;
}

/// NVRTC loads its built-in functions from a second library, by a bare name that the loader cannot know when NVRTC
/// itself came by a full path. Once the second library is in the process, the name is found.
void open_builtins(fs::path const& folder, std::string_view library) {
  const std::string_view major = library.substr(library.rfind('.') + 1);
  const std::string prefix = concat("libnvrtc-builtins.so.", major, ".");
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(prefix)) {
      dlopen(at->path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
  }
}

void* open_library() {
  for (fs::path const& folder : library_folders()) {
    for (const char* name : kLibraries) {
      std::error_code error;
      if (fs::exists(folder / name, error)) {
        open_builtins(folder, name);
        if (void* library = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
          return library;
        }
      }
    }
  }
  for (const char* name : kLibraries) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      return library;
    }
  }
  return nullptr;
}

Status to_status(Nvrtc const& nvrtc, NvrtcResult code, std::string_view call) {
  if (code == kNvrtcSuccess) {
    return absl::OkStatus();
  }
  const std::string text = concat(call, ": ", nvrtc.nvrtcGetErrorString(code), " (", static_cast<int>(code), ")");
  return code == kNvrtcErrorOutOfMemory ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

#define CATENA_NVRTC_TRY(nvrtc, function, ...) \
  CATENA_RETURN_IF_ERROR(to_status((nvrtc), (nvrtc).function(__VA_ARGS__), #function))

Result<Nvrtc> open_nvrtc() {
  void* library = open_library();
  if (library == nullptr) {
    std::string folders;
    for (fs::path const& folder : library_folders()) {
      folders += concat(folders.empty() ? "" : ", ", folder.string());
    }
    return absl::UnavailableError(
        concat("NVRTC, which compiles kernels for CUDA, is missing: no ", kLibraries[0], " in ", folders,
               " or on the loader's path; fetch it with `make deps-cuda`, or set CATENA_CUDA_HOME to a folder "
               "whose lib/ has it"));
  }
  Nvrtc nvrtc;
#define CATENA_NVRTC_FIND(name, ...)                                           \
  nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(dlsym(library, #name));  \
  if (nvrtc.name == nullptr) {                                                 \
    return absl::UnavailableError("the NVRTC library has no function " #name); \
  }
  CATENA_NVRTC_FIND(nvrtcGetErrorString)
  CATENA_NVRTC_FUNCTIONS(CATENA_NVRTC_FIND)
#undef CATENA_NVRTC_FIND
  int major = 0;
  int minor = 0;
  CATENA_NVRTC_TRY(nvrtc, nvrtcVersion, &major, &minor);
  nvrtc.version = concat(major, ".", minor);
  int count = 0;
  CATENA_NVRTC_TRY(nvrtc, nvrtcGetNumSupportedArchs, &count);
  nvrtc.architectures.resize(static_cast<std::size_t>(std::max(count, 0)));
  CATENA_NVRTC_TRY(nvrtc, nvrtcGetSupportedArchs, nvrtc.architectures.data());
  return nvrtc;
}

Result<Nvrtc const*> nvrtc_library() {
  // never destroyed: a compilation that was given up may outlive main()
  static const auto* opened = new Result<Nvrtc>(open_nvrtc());
  if (!opened->ok()) {
    return opened->status();
  }
  return &**opened;
}

/// A program of NVRTC with an owner.
class NvrtcProgram {
 public:
  NvrtcProgram(Nvrtc const& nvrtc, NvrtcHandle program) : nvrtc_(&nvrtc), program_(program) {}
  NvrtcProgram(NvrtcProgram const&) = delete;
  NvrtcProgram& operator=(NvrtcProgram const&) = delete;
  ~NvrtcProgram() { nvrtc_->nvrtcDestroyProgram(&program_); }
  NvrtcHandle get() const { return program_; }

 private:
  Nvrtc const* nvrtc_;
  NvrtcHandle program_;
};

std::string compile_log(Nvrtc const& nvrtc, NvrtcHandle program) {
  std::size_t bytes = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) != kNvrtcSuccess || bytes == 0) {
    return {};
  }
  std::string log(bytes, '\0');
  nvrtc.nvrtcGetProgramLog(program, log.data());
  log.resize(std::min(bytes - 1, std::size_t{32} * 1024));  // NVRTC counts the closing NUL
  return log;
}

/// InvalidArgument unless `architecture` is "sm_" and a number that this NVRTC knows.
Status check_architecture(Nvrtc const& nvrtc, std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix)) {
    const std::string_view digits = architecture.substr(kPrefix.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    number = error == std::errc() && end == digits.data() + digits.size() ? number : 0;
  }
  if (std::ranges::find(nvrtc.architectures, number) != nvrtc.architectures.end()) {
    return absl::OkStatus();
  }
  std::string known;
  for (const int other : nvrtc.architectures) {
    known += concat(known.empty() ? "sm_" : ", sm_", other);
  }
  return absl::InvalidArgumentError(
      concat("NVRTC ", nvrtc.version, " cannot compile for '", architecture, "'; it knows ", known));
}

Result<Binary> compile(Nvrtc const& nvrtc, ProgramSource const& source, std::string_view architecture) {
  std::vector<const char*> texts;
  std::vector<const char*> names;
  for (std::size_t i = 1; i < source.files.size(); ++i) {
    texts.push_back(source.files[i].text.c_str());
    names.push_back(source.files[i].name.c_str());
  }
  SourceFile const& main_file = source.files.front();
  NvrtcHandle created = nullptr;
  CATENA_NVRTC_TRY(nvrtc, nvrtcCreateProgram, &created, main_file.text.c_str(), main_file.name.c_str(),
                   static_cast<int>(texts.size()), texts.data(), names.data());
  const NvrtcProgram program(nvrtc, created);

  // C++17 is what C++ for OpenCL 2021 has; one source must mean the same on both.
  std::vector<std::string> options = {concat("--gpu-architecture=", architecture), "-std=c++17", "-default-device"};
  for (std::string const& define : source.defines) {
    options.push_back("-D" + define);
  }
  std::vector<const char*> arguments;
  for (std::string const& option : options) {
    arguments.push_back(option.c_str());
  }
  const NvrtcResult code =
      nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
  if (code == kNvrtcErrorCompilation || code == kNvrtcErrorInvalidOption) {
    return absl::InvalidArgumentError(concat("kernel source is refused by NVRTC ", nvrtc.version, " (",
                                             nvrtc.nvrtcGetErrorString(code), ", ", static_cast<int>(code), "):\n",
                                             compile_log(nvrtc, program.get())));
  }
  CATENA_RETURN_IF_ERROR(to_status(nvrtc, code, "nvrtcCompileProgram"));
  std::size_t bytes = 0;
  CATENA_NVRTC_TRY(nvrtc, nvrtcGetCUBINSize, program.get(), &bytes);
  std::vector<std::byte> cubin(bytes);
  CATENA_NVRTC_TRY(nvrtc, nvrtcGetCUBIN, program.get(), reinterpret_cast<char*>(cubin.data()));
  return wrap(BinaryKind::kCubin, cubin);
}

/// Times far above what a kernel takes (a tenth of a second).
constexpr std::chrono::seconds kLong{10};
constexpr std::chrono::seconds kCompileLimit{120};

/// compile() that comes back. NVRTC has no time limit and can compute for hours on a source that looks harmless, and it
/// asks its cancellation callback between its passes only; so it runs in a thread that can be left behind.
Result<Binary> compile_within_limit(Nvrtc const& nvrtc, ProgramSource const& source, std::string_view architecture) {
  struct Job {
    ProgramSource source;
    std::string architecture;
    std::promise<Result<Binary>> result;
  };
  const auto job = std::make_shared<Job>(Job{source, std::string(architecture), {}});
  std::future<Result<Binary>> result = job->result.get_future();
  std::thread compiling([job, &nvrtc] {
    // NVRTC does not promise that two threads may compile at once
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    job->result.set_value(compile(nvrtc, job->source, job->architecture));
  });

  if (result.wait_for(kLong) != std::future_status::ready) {
    spdlog::warn("NVRTC {} has been compiling '{}' for {} s; large structs passed by value make it slow", nvrtc.version,
                 source.files.front().name, kLong.count());
    if (result.wait_for(kCompileLimit - kLong) != std::future_status::ready) {
      compiling.detach();
      return absl::DeadlineExceededError(concat("NVRTC ", nvrtc.version, " did not compile '",
                                                source.files.front().name, "' within ", kCompileLimit.count(), " s"));
    }
  }
  compiling.join();
  return result.get();
}

}  // namespace

Status check_toolchain() { return nvrtc_library().status(); }

fs::path toolchain_home() {
  for (fs::path const& folder : library_folders()) {
    for (const char* name : kLibraries) {
      std::error_code error;
      if (fs::exists(folder / name, error)) {
        return fs::canonical(folder, error).parent_path();
      }
    }
  }
  return {};
}

}  // namespace cuda

Result<Binary> compile_cuda(ProgramSource const& source, std::string_view architecture) {
  CATENA_RETURN_IF_ERROR(check_source(source));
  CATENA_ASSIGN_OR_RETURN(cuda::Nvrtc const* nvrtc, cuda::nvrtc_library());
  CATENA_RETURN_IF_ERROR(cuda::check_architecture(*nvrtc, architecture));
  return cuda::compile_within_limit(*nvrtc, source, architecture);
}

}  // namespace catena::device
