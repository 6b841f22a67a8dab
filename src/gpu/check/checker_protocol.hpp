// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// The interface of the program catena-static-check. It has two descriptors and no arguments, which other users of the
/// machine could read.
namespace catena::static_check {

/// A file of entries, read to its end. An entry is a line "KIND NAME_BYTES TEXT_BYTES", the name and the text.
inline constexpr int kCheckerInput = 3;
/// Lines of findings: severity, file, line, column, rule and message, separated by tabs; then "end".
inline constexpr int kCheckerOutput = 4;

/// Kinds of entries.
inline constexpr std::string_view kAuthorEntry = "author";  ///< a file of the kernel; the kernel itself is first
inline constexpr std::string_view kFrameworkEntry = "framework";
inline constexpr std::string_view kDefineEntry = "define";  ///< "NAME=VALUE" as name, without text

inline constexpr std::uint64_t kCheckerMemory = std::uint64_t{3} << 30;
inline constexpr std::size_t kMaxCheckerOutput = std::size_t{1} << 20;

}  // namespace catena::static_check
