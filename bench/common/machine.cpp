// SPDX-License-Identifier: Apache-2.0
#include "bench/common/machine.hpp"

#include "bench/common/data.hpp"
#include "chain/workers.hpp"
#include "device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

namespace catena::bench {

std::uint32_t usable_cores() {
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, chain::usable_cores().size()));
}

std::string describe_machine() {
  std::string processor = "unknown processor";
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos) {
      processor = line.substr(colon + 2);
      break;
    }
  }
  utsname system{};
  const bool known = uname(&system) == 0;
  return concat(processor, ", ", usable_cores(), " cores, ",
                known ? system.sysname : "unknown system", " ", known ? system.release : "");
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
