// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "static_check/checker/findings.hpp"
#include "static_check/checker/source.hpp"

namespace catena::checker {

/// Reads the job's kernel as the compiler of `dialect` would, and adds what is wrong with it. No file of the machine is
/// opened but the compiler's own header. What the compiler refuses itself is a finding, too.
void check_dialect(Job const& job, Dialect dialect, Findings& findings);

}  // namespace catena::checker
