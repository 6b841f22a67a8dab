// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "functions/classify/rule.hpp"

namespace catena::classify {

/// The arrays of State, documented in classify.layout.hpp. For n rules at most 6n + 261 rows of (n + n / 32) / 8 bytes;
/// rows with equal bits are stored once.
struct BitVector {
  std::vector<std::uint32_t> src_trie;
  std::vector<std::uint32_t> dst_trie;
  std::vector<std::uint32_t> sport_rows;
  std::vector<std::uint32_t> dport_rows;
  std::vector<std::uint32_t> protocol_rows;
  std::vector<std::uint32_t> rows;
  std::uint32_t words = 0;
  std::uint32_t summary_words = 0;
  std::uint32_t no_ports_row = 0;
};

/// Precondition: 1 to kMaxRules rules, as returned by parse_rules(). Pure.
BitVector build_bit_vector(std::span<const Rule> rules);

}  // namespace catena::classify
