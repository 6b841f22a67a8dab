// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads ipv4.dst, writes a RouteResult. The look-up of a longest-prefix match alone.
#include <catena/kernel/context.hpp>

#include "functions/lpm/lookup.kernel.hpp"
#include "route.layout.hpp"

namespace catena::nca {

template <typename Entry>
inline u32 find_hop(kernel::Context const& ctx, lpm::LookupTable<Entry> const& table, u32 address) {
  return lpm::find_hop<Entry>(
      address, [&](u64 i) { return ctx.array(table.tbl24)[i]; }, [&](u64 i) { return ctx.array(table.tbl8)[i]; });
}

}  // namespace catena::nca

CATENA_KERNEL(nca_route) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const lpm::LookupState state = ctx.state<lpm::LookupState>();
  const u32 address = packet.get<packet::kIpv4Dst>();
  const u32 hop =
      state.is_wide != 0 ? nca::find_hop(ctx, state.wide, address) : nca::find_hop(ctx, state.narrow, address);
  packet.set_result(nca::RouteResult{hop});
}
