// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "apps/catena-static-check/diagnostics.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/Lex/PPCallbacks.h>

namespace catena::checker {

/// Checks the macros used in the author's files: only macros of the dialect and of a plan are allowed. Other macros
/// have different values in different compilers.
std::unique_ptr<clang::PPCallbacks> macro_check(clang::SourceManager const& sources, Diagnostics& diagnostics);

}  // namespace catena::checker
