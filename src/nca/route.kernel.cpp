// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads ipv4.dst, writes a RouteResult. The router NF's look-up, without what a router does.
#include <catena/kernel/context.hpp>

#include "lookup.kernel.hpp"
#include "route.layout.hpp"
#include "router.layout.hpp"

namespace catena::nca {

template <typename Entry>
inline u32 find_hop(kernel::Context const& ctx, router::LookupTable<Entry> const& table, u32 address) {
  return router::find_hop<Entry>(
      address, [&](u64 i) { return ctx.array(table.tbl24)[i]; }, [&](u64 i) { return ctx.array(table.tbl8)[i]; });
}

}  // namespace catena::nca

CATENA_KERNEL(nca_route) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const router::State state = ctx.state<router::State>();
  const u32 address = packet.get<packet::kIpv4Dst>();
  const u32 hop =
      state.is_wide != 0 ? nca::find_hop(ctx, state.wide, address) : nca::find_hop(ctx, state.narrow, address);
  packet.set_result(nca::RouteResult{hop});
}
