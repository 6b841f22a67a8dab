// SPDX-License-Identifier: Apache-2.0
// A kernel that takes centuries, and that a compiler cannot leave out: its result is of all rounds.
#include <catena/kernel/context.hpp>

#include "endless.layout.hpp"

CATENA_KERNEL(endless) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  u64 value = packet.get<packet::kIpv4Ttl>();
  for (u64 round = 0; round < ctx.state<endless::State>().rounds; ++round) {
    value = value * 6364136223846793005U + round;
  }
  packet.set_result(endless::EndlessResult{static_cast<u32>(value)});
}
