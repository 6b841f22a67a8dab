// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace catena::bench {

/// The source tree that this program was built in (build folder BUILD, program BUILD/src/NAME/PROGRAM); empty for an
/// installed one.
std::filesystem::path source_tree();

/// The folder `name` of the benchmarks' data: `given` unless empty, else where `make install` put it
/// (share/catena/bench), else bench/ of the source tree. NotFound, with what was searched for, if `files` are not in
/// it.
Result<std::filesystem::path> find_data(std::string const& given, std::string_view name,
                                        std::span<const std::string_view> files);

}  // namespace catena::bench
