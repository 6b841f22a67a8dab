// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads ipv4.ttl, writes a TtlGuardResult. Deterministic.
#include <catena/kernel/context.hpp>

#include "ttl_guard.layout.hpp"

CATENA_KERNEL(ttl_guard) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const u32 minimum = ctx.state<ttl_guard::State>().minimum;
  packet.set_result(ttl_guard::TtlGuardResult{packet.get<packet::kIpv4Ttl>() < minimum ? 1U : 0U});
}
