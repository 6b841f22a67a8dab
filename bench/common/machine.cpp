// SPDX-License-Identifier: Apache-2.0
#include "bench/common/machine.hpp"

#include "base/core/processor.hpp"
#include "bench/common/data.hpp"
#include "chain/workers.hpp"
#include "gpu/device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <absl/strings/numbers.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace catena::bench {
namespace {

struct Process {
  pid_t parent = 0;
  double seconds = 0;  ///< of the processor, user and system
};

/// By proc(5), stat: its name, in brackets, may have blanks; field 4 is the parent, 14 and 15 are its times in ticks.
Process parse_stat(std::string const& stat) {
  constexpr int kFieldsBetween = 9;  // after the parent
  Process process;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) {
    return process;
  }
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  double user = 0;
  double system = 0;
  fields >> skipped >> process.parent;
  for (int field = 0; field < kFieldsBetween; ++field) {
    fields >> skipped;
  }
  fields >> user >> system;
  process.seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return process;
}

/// All that run. One that ends meanwhile is left out.
std::map<pid_t, Process> read_processes() {
  std::map<pid_t, Process> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error); !error && at != std::filesystem::directory_iterator();
       at.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(at->path().filename().string(), &pid)) {
      continue;
    }
    std::ifstream in(at->path() / "stat");
    if (std::string stat; std::getline(in, stat)) {
      processes.emplace(pid, parse_stat(stat));
    }
  }
  return processes;
}

/// Whether it was started by `root`, or by one that was.
bool is_below(std::map<pid_t, Process> const& processes, pid_t pid, pid_t root) {
  while (true) {
    const auto found = processes.find(pid);
    if (found == processes.end() || found->second.parent == pid) {
      return false;
    }
    if (found->second.parent == root) {
      return true;
    }
    pid = found->second.parent;
  }
}

}  // namespace

std::uint32_t usable_cores() {
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, chain::usable_cores().size()));
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval const& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  double sum = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  const std::map<pid_t, Process> processes = read_processes();
  for (auto const& [pid, process] : processes) {
    sum += is_below(processes, pid, ::getpid()) ? process.seconds : 0;
  }
  return sum;
}

std::string describe_machine() {
  utsname system{};
  const bool known = uname(&system) == 0;
  return concat(processor_model(), ", ", usable_cores(), " cores, ", known ? system.sysname : "unknown system", " ",
                known ? system.release : "");
}

std::string source_commit(std::filesystem::path const& folder) {
  constexpr std::chrono::seconds kLimit{10};
  if (const char* told = std::getenv("CATENA_COMMIT"); told != nullptr) {
    return told;
  }
  const std::string git = device::find_in_path("git");
  const std::filesystem::path tree = source_tree();
  if (git.empty() || tree.empty()) {
    return "unknown";
  }
  const Result<device::ProcessResult> commit = device::run_process(
      {git, "-C", tree.string(), "describe", "--always", "--abbrev=12", "--dirty=-modified", "--exclude=*"}, folder,
      kLimit);
  if (!commit.ok() || commit->exit_code != 0) {
    return "unknown";
  }
  std::string text = commit->output;
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return text;
}

}  // namespace catena::bench
