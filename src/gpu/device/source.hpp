// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include <string>

namespace catena::device {

/// InvalidArgument if the source has no file, or if a name is empty, absolute, or leads out of the target folder.
Status check_source(ProgramSource const& source);

/// InvalidArgument if a file could make a compiler read anything but the other files. For untrusted sources, since a
/// compiler can read all files of its process. Stricter than the language: a line with `include`, `embed` or `import`
/// that may be a directive is refused, unless it is `#include` with the name of a file or with the end of a name after
/// a `/`.
Status check_self_contained(ProgramSource const& source);

/// The program as one text: its defines, then the first file with each `#include` of another of its files replaced by
/// that file, at most once per file (every kernel header has `#pragma once`). Other includes stay unchanged. `#line`
/// keeps the compiler's messages correct. For drivers that take one source text and no files.
/// Precondition: check_source() is OK.
std::string flatten(ProgramSource const& source);

}  // namespace catena::device
