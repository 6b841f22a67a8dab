// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/proc.hpp"

#include <catena/core/text.hpp>

#include <charconv>
#include <fstream>
#include <sstream>

namespace catena::sandbox {

std::optional<ProcessStat> read_process_stat(pid_t process) {
  std::ostringstream text;
  text << std::ifstream(concat("/proc/", process, "/stat")).rdbuf();
  // NUMBER (NAME) STATE PARENT ... START ...; a name may have brackets and spaces itself
  const std::string line = text.str();
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return std::nullopt;
  }
  ProcessStat stat;
  stat.name = line.substr(open + 1, close - open - 1);
  // the third field is its state, the fourth its parent, the 22nd its start
  constexpr int kBetween = 17;
  std::string other;
  std::istringstream rest(line.substr(close + 1));
  rest >> other >> stat.parent;
  for (int i = 0; i < kBetween; ++i) {
    rest >> other;
  }
  rest >> stat.started;
  return rest ? std::optional(stat) : std::nullopt;
}

pid_t first_child_of(pid_t process) {
  pid_t child = 0;
  std::ifstream(concat("/proc/", process, "/task/", process, "/children")) >> child;
  return child;
}

pid_t find_child_pid(std::string_view status) {
  constexpr std::string_view kKey = "\"child-pid\":";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) {
    return 0;
  }
  status.remove_prefix(at + kKey.size());
  status.remove_prefix(std::min(status.find_first_not_of(' '), status.size()));
  pid_t pid = 0;
  const char* const end = status.data() + status.size();
  const auto [next, error] = std::from_chars(status.data(), end, pid);
  return error == std::errc() && next != end ? pid : 0;
}

}  // namespace catena::sandbox
