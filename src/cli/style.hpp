// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

namespace catena::cli {

/// Whether what goes to `descriptor` may have colours: it is a terminal, and NO_COLOR is not set
/// (https://no-color.org).
bool has_colours(int descriptor);

/// Prints text, with the lines that warn in colour where `coloured`.
void print(std::ostream& out, std::string_view text, bool coloured);

}  // namespace catena::cli
