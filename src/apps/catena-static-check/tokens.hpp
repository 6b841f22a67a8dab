// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena-static-check/diagnostics.hpp"
#include "apps/catena-static-check/source.hpp"

namespace catena::checker {

/// Checks the text of the author's files token by token before preprocessing, including text that one of the two
/// compilers would skip. Kernels have no macros and no conditions of their own, so the remaining text has the same
/// meaning for every compiler as for the compiler of the syntax tree. False if it does not: the syntax tree would then
/// prove nothing.
bool check_tokens(Job const& job, Diagnostics& diagnostics);

}  // namespace catena::checker
