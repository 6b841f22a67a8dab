// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.hpp"

#include <catena/core/status.hpp>

#include <iostream>

namespace catena::cli {

/// Says on standard error what went wrong, and with `json` also as an object with "ok", which is false, and "errors" to
/// `out`; the exit status for it.
int fail(Status const& status, bool json = false, std::ostream& out = std::cout);

}  // namespace catena::cli
