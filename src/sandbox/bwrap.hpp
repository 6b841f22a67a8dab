// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.hpp"

/// What bubblewrap is told, and why it may not work.
namespace catena::sandbox {

/// The numbers of the descriptors that bubblewrap reads and writes itself, after those of the program.
struct BwrapFds {
  int arguments = -1;  ///< its own arguments: not on its command line, which the program and other users can read
  int filter = -1;
  int status = -1;
  int gate = -1;    ///< it executes the program when it has read a byte there
  int copied = -1;  ///< the first of those that it copies files from

  /// For a program that has `program_fds`.
  static BwrapFds after(std::size_t program_fds);
};

/// Options of bubblewrap, each an argument.
std::vector<std::string> bwrap_arguments(SandboxOptions const& options, BwrapFds const& fds);

/// Why bubblewrap failed and what helps, from what it wrote and the settings of this machine.
Status explain_failure(SandboxOptions const& options, std::string_view what_it_said);

}  // namespace catena::sandbox
