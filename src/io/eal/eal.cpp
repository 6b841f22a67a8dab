// SPDX-License-Identifier: Apache-2.0
#include "io/eal/eal.hpp"

#include <fmt/ranges.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace catena::eal {
namespace {

struct Eal {
  std::mutex mutex;
  std::optional<Status> started;  // the outcome of the one attempt
  std::vector<std::string> extra_args;
};

Eal& eal() {
  static Eal instance;
  return instance;
}

/// "--name" of "--name=value"; "-m" of "-m512".
std::string_view option_name(std::string_view argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
}

bool names_any(std::span<const std::string> arguments, std::initializer_list<std::string_view> names) {
  return std::any_of(arguments.begin(), arguments.end(), [&](std::string const& argument) {
    return std::find(names.begin(), names.end(), option_name(argument)) != names.end();
  });
}

int first_cpu(cpu_set_t const& cpus) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) {
      return cpu;
    }
  }
  return 0;
}

std::vector<std::string> arguments_for(std::span<const std::string> extra, cpu_set_t const& cpus) {
  std::vector<std::string> arguments{"catena"};
  const auto add_unless = [&](std::initializer_list<std::string_view> names, std::vector<std::string> const& own) {
    if (!names_any(extra, names)) {
      arguments.insert(arguments.end(), own.begin(), own.end());
    }
  };
  add_unless({"--no-huge", "--in-memory", "--huge-dir", "--socket-mem"}, {"--no-huge"});
  add_unless({"-m", "--socket-mem"}, {"-m", concat(kMemoryMb)});
  add_unless({"--no-pci", "-a", "--allow", "-b", "--block"}, {"--no-pci"});
  add_unless({"--no-shconf", "--in-memory"}, {"--no-shconf"});
  add_unless({"--no-telemetry", "--telemetry"}, {"--no-telemetry"});
  add_unless({"--log-level"}, {"--log-level=error"});
  add_unless({"--force-max-simd-bitwidth"}, {"--force-max-simd-bitwidth=512"});
  add_unless({"-l", "-c", "--lcores", "-s", "-S"}, {concat("--lcores=0@", first_cpu(cpus))});
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  return arguments;
}

/// memfd_create(2). DPDK 22.11 names descriptor 0, whatever that is, for memory that got no file.
bool is_file_in_memory(int descriptor) {
  std::error_code error;
  const auto name = std::filesystem::read_symlink(concat("/proc/self/fd/", descriptor), error);
  return name.native().starts_with("/memfd:");
}

/// DPDK makes files in memory with mode 0777.
void close_memory_to_others() {
  int seen = -1;  // half a million pages may be of one descriptor
  const auto close = [](rte_memseg_list const*, rte_memseg const* segment, void* last) {
    const int file = rte_memseg_get_fd_thread_unsafe(segment);  // the walk has the lock
    if (file >= 0 && file != *static_cast<int*>(last)) {
      *static_cast<int*>(last) = file;
      if (is_file_in_memory(file)) {
        ::fchmod(file, S_IRUSR | S_IWUSR);
      }
    }
    return 0;
  };
  rte_memseg_walk(close, &seen);
}

/// DPDK makes a folder for what its processes have in common, in /tmp where a user has none of his own: the second user
/// of a machine may not, and reads an error. Here they have nothing in common (--no-shconf), so DPDK gets a folder of
/// its own as long as it starts.
class StartFolder {
 public:
  StartFolder() {
    if (::getuid() == 0 || std::getenv(kVariable) != nullptr || std::getenv("XDG_RUNTIME_DIR") != nullptr) {
      return;
    }
    std::error_code error;
    std::string name = std::filesystem::temp_directory_path(error) / "catena-dpdk-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr && ::setenv(kVariable, name.c_str(), 1) == 0) {
      folder_ = name;
    }
  }
  ~StartFolder() {
    if (!folder_.empty()) {
      ::unsetenv(kVariable);
      std::error_code error;
      std::filesystem::remove_all(folder_, error);
    }
  }
  StartFolder(StartFolder const&) = delete;
  StartFolder& operator=(StartFolder const&) = delete;

 private:
  static constexpr const char* kVariable = "RUNTIME_DIRECTORY";
  std::string folder_;  ///< empty: DPDK's own serves
};

constexpr std::string_view kHugepageHelp =
    "; a PCI device needs reserved hugepages: echo 1024 | sudo tee /proc/sys/vm/nr_hugepages";

/// Whether hugepages of any size are reserved.
bool has_hugepages() {
  std::error_code error;
  for (auto const& size : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    std::uint64_t pages = 0;
    if (std::ifstream(size.path() / "nr_hugepages") >> pages; pages > 0) {
      return true;
    }
  }
  return false;
}

Status initialize(std::span<const std::string> extra) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const pthread_t self = pthread_self();
  if (const int error = pthread_getaffinity_np(self, sizeof cpus, &cpus); error != 0) {
    return absl::UnavailableError(concat("DPDK cannot start: the thread's CPUs cannot be read, error ", error));
  }
  std::vector<std::string> arguments = arguments_for(extra, cpus);
  const std::string command_line = fmt::format("{}", fmt::join(arguments, " "));
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  const StartFolder folder;
  const int rc = rte_eal_init(static_cast<int>(arguments.size()), argv.data());
  // the EAL pins the thread that starts it, and threads created later would inherit that
  pthread_setaffinity_np(self, sizeof cpus, &cpus);
  if (rc >= 0) {
    close_memory_to_others();
    return absl::OkStatus();
  }
  if (rte_errno == EALREADY) {
    return absl::FailedPreconditionError("DPDK was already started by other code of this process");
  }
  const int error = rte_errno;
  const bool lacks_hugepages = !names_any(arguments, {"--no-huge"}) && !has_hugepages();
  return absl::UnavailableError(concat("DPDK did not start: ", rte_strerror(error),
                                       lacks_hugepages ? kHugepageHelp : std::string_view(),
                                       "; its command line was: ", command_line));
}

}  // namespace

ProcessNeeds needs() {
  constexpr char kProcessors[] = "/sys/devices/system/cpu";
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint64_t kScratch = std::uint64_t{1} << 20U;
  ProcessNeeds needs;
  needs.files = {{kProcessors, {}}, {kProcessors, "/sys/module"}};  // a folder without the module that it seeks
  needs.scratch_bytes = kScratch;                                   // StartFolder
  needs.memory_bytes = std::uint64_t{kMemoryMb} << 20U;
  needs.threads = kThreads;
  return needs;
}

Status start(std::span<const std::string> extra_args) {
  const std::lock_guard lock(eal().mutex);
  if (!eal().started.has_value()) {
    eal().extra_args.assign(extra_args.begin(), extra_args.end());
    eal().started = initialize(extra_args);
    return *eal().started;
  }
  CATENA_RETURN_IF_ERROR(*eal().started);
  for (std::string const& argument : extra_args) {
    if (std::find(eal().extra_args.begin(), eal().extra_args.end(), argument) == eal().extra_args.end()) {
      return absl::FailedPreconditionError(
          concat("DPDK already runs, started without '", argument, "'; give it when the process starts DPDK"));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::eal
