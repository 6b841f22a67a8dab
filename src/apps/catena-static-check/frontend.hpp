// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena-static-check/diagnostics.hpp"
#include "apps/catena-static-check/source.hpp"

namespace catena::checker {

/// Parses the job's kernel as the compiler of `dialect` would, and adds the findings. Opens no file of the machine
/// except the compiler's own header. Compiler errors are findings, too.
void check_dialect(Job const& job, Dialect dialect, Diagnostics& diagnostics);

}  // namespace catena::checker
