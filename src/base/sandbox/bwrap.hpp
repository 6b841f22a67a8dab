// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/sandbox/sandbox.hpp"

/// Arguments of bubblewrap, and explanations of its failures.
namespace catena::sandbox {

/// Numbers of the descriptors used by bubblewrap itself, after the program's.
struct BwrapFds {
  int arguments = -1;  ///< its own arguments: not on its command line, which is visible to the program and other users
  int filter = -1;     ///< of system calls: it executes the program after reading all of it
  int status = -1;
  int copied = -1;  ///< the first of the descriptors from which it copies files

  /// For a program with `program_fds` descriptors.
  static BwrapFds after(std::size_t program_fds);
};

/// The command-line arguments of bubblewrap.
std::vector<std::string> bwrap_arguments(SandboxOptions const& options, BwrapFds const& fds);

/// The reason for a failure of bubblewrap and its remedy, from its output and the settings of this machine.
Status explain_failure(SandboxOptions const& options, std::string_view what_it_said);

}  // namespace catena::sandbox
