// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <string>
#include <string_view>
#include <vector>

/// Oracles: programs that share no code with this project and judge the output of an NF. The scripts that run them are
/// in the NF's folder oracle/.
namespace catena::nf::testing {

/// Exit status of a shell command, -1 without one (not started, ended by a signal), and its whole output.
struct CommandResult {
  int status = -1;
  std::string output;
};
CommandResult run_command(std::string const& command);

/// Whether the command exits with status 0: tests skip if a required program is not installed.
bool succeeds(std::string const& command);
/// Whether the Python of the scripts has these modules, separated by commas.
bool can_import(std::string_view modules);
bool has_tshark();

/// A script's exit status if the machine lacks a requirement; its output then names it.
inline constexpr int kOracleCannot = 77;

/// Runs nfs/<nf>/oracle/<script>, which can import modules from tests/oracle/. No argument may contain a single quote.
/// `before`: words before the command ("unshare --net").
CommandResult run_oracle(std::string_view nf, std::string_view script, std::vector<std::string> const& arguments,
                         std::string_view before = "");

/// Writes the frames in the format of tests/oracle/frames.py: a little-endian pcap file, all times 0. A failed write is
/// not reported; the reader of the file fails then.
void write_capture(std::string const& path, std::vector<Frame> const& frames);

}  // namespace catena::nf::testing
