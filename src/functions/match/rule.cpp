// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule.hpp"

namespace catena::match {

bool TcpFlags::match(std::uint8_t header) const {
  if (flags == 0) {
    return mode == Mode::kNotAll ? header != 0 : mode != Mode::kAny && header == 0;
  }
  const unsigned set = header & ~static_cast<unsigned>(ignored) & 0xFFU;
  switch (mode) {
    case Mode::kExactly:
      return set == flags;
    case Mode::kAll:
      return (set & flags) == flags;
    case Mode::kAny:
      return (set & flags) != 0;
    case Mode::kNotAll:
      return (set & flags) != flags;
  }
  return false;
}

}  // namespace catena::match
