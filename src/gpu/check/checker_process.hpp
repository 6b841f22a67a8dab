// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace catena::static_check {

/// Runs `program` with `input` as the file of checker_protocol.hpp, and waits. It reads hostile sources: if the caller
/// is root, it runs in a sandbox as a reserved user (ADR 0054); else it has the caller's rights. Returns the program's
/// output; empty if the program failed, wrote more than kMaxCheckerOutput, or was killed after `limit`. Thread rule:
/// any. Errors: Unavailable without memory or a pipe, if the program cannot be started, or if the sandbox cannot be
/// created: no weaker one is used as a fallback. DeadlineExceeded if its creation takes longer than `limit`.
Result<std::string> run_checker(std::filesystem::path const& program, std::string_view input,
                                std::chrono::milliseconds limit);

}  // namespace catena::static_check
