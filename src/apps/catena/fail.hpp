// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena/commands.hpp"

#include <catena/core/status.hpp>

#include <iostream>

namespace catena::cli {

/// Prints the error to standard error. With `json`, also writes an object with "ok", which is false, and "errors" to
/// `out`. Returns the exit status for the error.
int fail(Status const& status, bool json = false, std::ostream& out = std::cout);

}  // namespace catena::cli
