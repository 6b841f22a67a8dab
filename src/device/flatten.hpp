// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/device/device.hpp>

#include <string>

namespace catena::device {

/// The program as one text: its defines, then the first file with every `#include` of another of its files replaced by
/// that file, each at most once (every header of a kernel says `#pragma once`). Other includes stay as they are.
/// `#line` keeps the compiler's messages true. For drivers that take one source text and no files.
std::string flatten(ProgramSource const& source);

}  // namespace catena::device
