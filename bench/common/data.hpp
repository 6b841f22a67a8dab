// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace catena::bench {

/// The source tree that this program was built in, as BUILD/bench/PROGRAM; empty where it was taken elsewhere.
std::filesystem::path source_tree();

/// The folder with a benchmark's data: `given`, or bench/NAME/data of the source tree where that is empty. NotFound,
/// with what was searched for, if `files` are not in it.
Result<std::filesystem::path> find_data(std::string const& given, std::string_view name,
                                        std::span<const std::string_view> files);

}  // namespace catena::bench
