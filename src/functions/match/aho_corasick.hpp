// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/pattern_set.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::match {

/// The automaton of Aho and Corasick (CACM 18(6), 1975) over some patterns, as a complete table: one look-up per byte.
///
/// Bytes that no pattern distinguishes share a column (a class), so 5,000 host names need 39 columns and not 256. For
/// nocase patterns upper and lower case share a column, so payloads need no folding. A state is identified by its row,
/// the position of its first column in `next`. States in which a deciding pattern ends have the lowest rows, followed
/// by states in which only other patterns end, so one comparison finds either kind. `longest` is the longest pattern
/// ending in a state; the others ending in it are suffixes of this pattern. A state's depth is the number of input
/// bytes that it represents: the longest suffix of the input that is a prefix of a pattern.
struct Automaton {
  std::array<std::uint8_t, 256> classes{};
  std::uint32_t class_count = 1;
  std::uint32_t start = 0;             ///< row of the state before the first byte
  std::uint32_t deciding_rows = 0;     ///< a deciding pattern ends in rows below this
  std::uint32_t match_rows = 0;        ///< a pattern ends in rows below this; at least deciding_rows
  std::vector<std::uint32_t> next;     ///< [states][class_count] -> row
  std::vector<std::uint16_t> longest;  ///< [match_rows / class_count] -> pattern
  std::vector<std::uint16_t> depths;   ///< [states]; no pattern is longer than 65,535 bytes

  std::uint32_t state_count() const { return static_cast<std::uint32_t>(next.size() / class_count); }
};

inline constexpr std::uint16_t kNoPattern = 0xFFFF;
/// A device's list entry holds a pattern's number in 16 bits; kNoPattern is not a number.
inline constexpr std::uint32_t kMaxPatterns = kNoPattern;
/// 256 MB of table.
inline constexpr std::size_t kMaxTableEntries = std::size_t{1} << 26;

/// Builds the automaton of the patterns with this `nocase`; an empty table without such patterns. `deciding`: for each
/// pattern whether it can make a rule match (Evaluator::deciding_patterns()).
/// Errors: ResourceExhausted with the numbers if more than kMaxPatterns patterns exist or the table would have more
/// than kMaxTableEntries entries.
Result<Automaton> build_automaton(std::span<const Pattern> patterns, bool nocase, std::vector<bool> const& deciding);

inline constexpr std::uint32_t kNoSuffix = 0xFFFFFFFF;
/// For each pattern the longest other one with the same `nocase` that is a suffix of it, or kNoSuffix. Following these
/// links from Automaton::longest gives every pattern that ends at a position.
std::vector<std::uint32_t> suffix_links(std::span<const Pattern> patterns);

}  // namespace catena::match
