// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

namespace catena::cli {

/// Whether output to `descriptor` may have colours: it is a terminal, and NO_COLOR is not set (https://no-color.org).
bool has_colours(int descriptor);

/// Prints text. Warning lines are coloured if `coloured`.
void print(std::ostream& out, std::string_view text, bool coloured);

}  // namespace catena::cli
