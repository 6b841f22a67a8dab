// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "static_check/checker/findings.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/Lex/PPCallbacks.h>

namespace catena::checker {

/// Watches which macros the author's files use: those of the dialect, and what a plan defines. Others have different
/// values in different compilers.
std::unique_ptr<clang::PPCallbacks> macro_check(clang::SourceManager const& sources, Findings& findings);

}  // namespace catena::checker
