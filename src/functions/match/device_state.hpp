// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <span>

#include "functions/match/aho_corasick.hpp"
#include "functions/match/match.layout.hpp"

namespace catena::match {

/// Adds an automaton's tables to the state of the kernel and returns their positions.
inline DeviceAutomaton add_automaton(nf::StateBuilder& state, Automaton const& automaton) {
  return {.classes = state.add(std::span<const std::uint8_t>(automaton.classes)),
          .next = state.add(std::span(automaton.next)),
          .longest = state.add(std::span(automaton.longest)),
          .depths = state.add(std::span(automaton.depths)),
          .class_count = automaton.class_count,
          .start = automaton.start,
          .deciding_rows = automaton.deciding_rows,
          .match_rows = automaton.match_rows};
}

}  // namespace catena::match
