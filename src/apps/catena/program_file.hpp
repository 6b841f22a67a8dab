// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

namespace catena::cli {

/// Whether a library loaded before libc gets the calls of a program: of the file that execvp() finds by `name`, or of
/// the interpreter in its first line. InvalidArgument: the program is linked statically or written in Go. Any other
/// file is OK, also a missing one: execvp() has the better message.
Status check_loads_libraries(std::string const& name);

}  // namespace catena::cli
