// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "static_check/checker/findings.hpp"
#include "static_check/checker/source.hpp"

namespace catena::checker {

/// Checks the text of the author's files token by token, before anything is preprocessed: also what one of the two
/// compilers would skip. Kernels have no macros and no conditions of their own, so what is left means to every compiler
/// what it means to the one that the syntax tree comes from. False where it does not: a syntax tree would say nothing
/// of it.
bool check_tokens(Job const& job, Findings& findings);

}  // namespace catena::checker
