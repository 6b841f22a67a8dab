// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <string>
#include <string_view>
#include <vector>

/// Oracles: programs that share no code with this project and judge what an NF does. An NF keeps the scripts that drive
/// them in its folder oracle/.
namespace catena::nf::testing {

/// Exit status of a shell command, -1 if it had none (not started, ended by a signal), and all that it printed.
struct CommandResult {
  int status = -1;
  std::string output;
};
CommandResult run_command(std::string const& command);

/// Whether the command ends with status 0: tests skip where what they need is not installed.
bool succeeds(std::string const& command);
/// Whether the Python that runs the scripts has these modules, separated by commas.
bool can_import(std::string_view modules);
bool has_tshark();

/// A script's exit status where the machine lacks what it needs; its output then says what.
inline constexpr int kOracleCannot = 77;

/// Runs nfs/<nf>/oracle/<script>, which can import what lies in tests/oracle/. No argument may hold a single quote.
/// `before`: words in front of the command ("unshare --net").
CommandResult run_oracle(std::string_view nf, std::string_view script, std::vector<std::string> const& arguments,
                         std::string_view before = "");

/// Writes the frames as tests/oracle/frames.py reads them: a little-endian pcap file, all times 0. A file that cannot
/// be written is missed by who reads it.
void write_capture(std::string const& path, std::vector<Frame> const& frames);

}  // namespace catena::nf::testing
