// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

/// Files of profiles, whatever their content.
namespace catena::chain {

/// The text of a profile's file. `remedy` ends messages about an unusable one. NotFound: no such file. InvalidArgument:
/// not a regular file, or longer than 256 KiB. PermissionDenied: no permission. Unavailable: the file cannot be read.
Result<std::string> read_profile_file(std::filesystem::path const& file, std::string_view remedy);

/// Replaces `file` atomically, by rename, and creates missing folders. InvalidArgument: `file` exists and is not a
/// regular file. Unavailable: it cannot be written.
Status write_profile_file(std::filesystem::path const& file, std::string_view text, mode_t mode);

}  // namespace catena::chain
