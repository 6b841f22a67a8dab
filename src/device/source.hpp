// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include <string>

namespace catena::device {

/// InvalidArgument if there is no file, or if a name is empty, absolute, or leads out of the folder that it is written
/// to.
Status check_source(ProgramSource const& source);

/// InvalidArgument where a file could have a compiler read anything but the other files: for sources of strangers,
/// since a compiler reads what its process may. Stricter than the language: a line that has such a word where a
/// directive may be is refused unless it is `#include` with the name of a file, or what follows the last folder of one.
Status check_self_contained(ProgramSource const& source);

/// The program as one text: its defines, then the first file with every `#include` of another of its files replaced by
/// that file, each at most once (every header of a kernel says `#pragma once`). Other includes stay as they are.
/// `#line` keeps the compiler's messages true. For drivers that take one source text and no files.
/// Precondition: check_source() is OK.
std::string flatten(ProgramSource const& source);

}  // namespace catena::device
