// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace catena::bench {

/// The source tree of this program, if it runs as BUILD/bench/PROGRAM; empty if the program was moved elsewhere.
std::filesystem::path source_tree();

/// The folder with a benchmark's data: `given`, or bench/NAME/data of the source tree if `given` is empty. NotFound,
/// with the searched paths, if `files` are not in it.
Result<std::filesystem::path> find_data(std::string const& given, std::string_view name,
                                        std::span<const std::string_view> files);

}  // namespace catena::bench
