// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <iostream>

namespace catena::cli {

/// The lines of an error as objects: file, line and column where the line names them, else null, and the message.
nlohmann::ordered_json errors_of(Status const& status);

/// Says on standard error what went wrong, and with `json` also as an object with "ok", which is false, and "errors" to
/// `out`; the exit status for it.
int fail(Status const& status, bool json = false, std::ostream& out = std::cout);

}  // namespace catena::cli
