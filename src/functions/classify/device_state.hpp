// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include "functions/classify/bit_vector.hpp"
#include "functions/classify/classify.layout.hpp"

namespace catena::classify {

/// The tables in the kernel's format: State, followed by its arrays.
inline std::vector<std::byte> device_state(BitVector const& tables) {
  nf::StateBuilder state(sizeof(State));
  State header{};
  header.src_trie = state.add(std::span(tables.src_trie));
  header.dst_trie = state.add(std::span(tables.dst_trie));
  header.sport_rows = state.add(std::span(tables.sport_rows));
  header.dport_rows = state.add(std::span(tables.dport_rows));
  header.protocol_rows = state.add(std::span(tables.protocol_rows));
  header.rows = state.add(std::span(tables.rows));
  header.words = tables.words;
  header.summary_words = tables.summary_words;
  header.no_ports_row = tables.no_ports_row;
  return state.finish(header);
}

}  // namespace catena::classify
