// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.hpp"

#include <catena/core/status.hpp>

#include <iostream>
#include <string>

namespace catena::cli {

/// Says on standard error what went wrong; the exit status for it.
inline int fail(Status const& status) {
  std::cerr << "catena: " << std::string(status.message()) << '\n';
  return kExitFailed;
}

}  // namespace catena::cli
