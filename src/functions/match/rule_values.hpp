// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/rule.hpp"
#include "functions/match/rule_text.hpp"

#include <cstdint>
#include <variant>
#include <vector>

/// The values of rule options with a small language of their own. Errors name the correction.
/// Thread rule: pure functions.
namespace catena::match {

/// A whole number from `minimum` to `maximum`, without other text.
std::variant<std::int64_t, TextError> read_number(Word value, std::int64_t minimum, std::int64_t maximum);

/// The value of `dsize`, `itype` and `icode`, as a set of 0 .. maximum: `8`, `=8`, `!8`, `!=8`, `<8`, `<=8`, `>8`,
/// `>=8`, and `5<>9` or `5-9`, which is 6 to 8. Error if the set is empty.
std::variant<IntervalSet, TextError> read_number_set(Word value, std::uint32_t maximum);

/// The value of `flags`: the flags to check, of F S R P A U 1 (or C) 2 (or E) and 0, with at most one of + * ! among
/// them; after a comma the flags to ignore.
std::variant<TcpFlags, TextError> read_tcp_flags(Word value);

/// The parts between commas, without the spaces around them.
std::vector<Word> split_commas(Word list);

}  // namespace catena::match
