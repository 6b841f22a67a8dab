// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/hostcopy/engine.hpp"
#include "base/hostcopy/instant_engine.hpp"

namespace catena::hostcopy {
namespace {

/// So many moves ahead their first bytes are asked for: packets lie too far apart for the CPU to guess the next.
constexpr std::size_t kPrefetchAhead = 6;

}  // namespace

void make_moves(std::span<const Move> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (i + kPrefetchAhead < moves.size()) {
      __builtin_prefetch(moves[i + kPrefetchAhead].from);
    }
    std::memcpy(moves[i].to, moves[i].from, moves[i].bytes);
  }
}

std::unique_ptr<Engine> make_cpu_engine() {
  return std::make_unique<InstantEngine<decltype(&make_moves)>>(kCpuEngine, &make_moves);
}

Status probe_cpu_engine() { return absl::OkStatus(); }
Result<std::unique_ptr<Engine>> open_cpu_engine() { return make_cpu_engine(); }

}  // namespace catena::hostcopy
