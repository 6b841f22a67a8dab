// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/oracle.hpp>

#include <catena/core/text.hpp>

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace catena::nf::testing {
namespace {

// Debian's, which has Debian's scapy; the first one of PATH may be another
constexpr std::string_view kPython = "/usr/bin/python3";

}  // namespace

CommandResult run_command(std::string const& command) {
  CommandResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), bytes);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

bool succeeds(std::string const& command) { return run_command(command).status == 0; }

bool can_import(std::string_view modules) { return succeeds(concat(kPython, " -c 'import ", modules, "'")); }

bool has_tshark() { return succeeds("tshark --version"); }

CommandResult run_oracle(std::string_view nf, std::string_view script, std::vector<std::string> const& arguments,
                         std::string_view before) {
  // -B: no __pycache__ in the source tree
  std::string command = concat("PYTHONPATH='", CATENA_SOURCE_DIR, "/tests/oracle'\"${PYTHONPATH:+:$PYTHONPATH}\" ",
                               before, " ", kPython, " -B '", CATENA_SOURCE_DIR, "/nfs/", nf, "/oracle/", script, "'");
  for (std::string const& argument : arguments) {
    command += concat(" '", argument, "'");
  }
  return run_command(command);
}

void write_capture(std::string const& path, std::vector<Frame> const& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&file](std::vector<std::uint32_t> const& words) {
    file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  };
  put({0xA1B2C3D4, 2 | 4 << 16, 0, 0, 65535, 1});
  for (Frame const& frame : frames) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    put({0, 0, length, length});
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

}  // namespace catena::nf::testing
