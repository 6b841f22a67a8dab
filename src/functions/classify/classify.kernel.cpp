// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads ipv4.src, ipv4.dst, ipv4.protocol, l4.sport, l4.dport and meta.layers, writes a
// ClassifyResult and nothing else. Deterministic; no scratch memory. The tables in the state are read-only.
#include <catena/kernel/context.hpp>

#include "functions/classify/classify.layout.hpp"
#include "functions/classify/search.kernel.hpp"

namespace catena::classify {

using kernel::Context;
using kernel::IsoPtr;

struct DeviceTables {
  IsoPtr<u32> src_trie;
  IsoPtr<u32> dst_trie;
  IsoPtr<u32> sport_rows;
  IsoPtr<u32> dport_rows;
  IsoPtr<u32> protocol_rows;
  IsoPtr<u32> rows;
  u32 words;
  u32 summary_words;
  u32 no_ports_row;

  /// Five at a time, none of which waits for another.
  IsoPtr<u32>::Lookups row_words() const { return rows.lookups(); }
  u32 lowest_bit(u32 value) const { return kernel::lowest_bit(value); }
};

inline DeviceTables tables_of(Context const& ctx) {
  const State state = ctx.state<State>();
  return {ctx.array(state.src_trie),
          ctx.array(state.dst_trie),
          ctx.array(state.sport_rows),
          ctx.array(state.dport_rows),
          ctx.array(state.protocol_rows),
          ctx.array(state.rows),
          state.words,
          state.summary_words,
          state.no_ports_row};
}

}  // namespace catena::classify

CATENA_KERNEL(classify) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  classify::Key key{};
  key.src = packet.get<packet::kIpv4Src>();
  key.dst = packet.get<packet::kIpv4Dst>();
  key.sport = packet.get<packet::kL4Sport>();
  key.dport = packet.get<packet::kL4Dport>();
  key.protocol = packet.get<packet::kIpv4Protocol>();
  const u32 flags = packet.layers().flags;
  key.has_ports = packet::has_whole_ports(flags) ? 1 : 0;
  if (key.has_ports == 0) {
    const i32 refusal = classify::refusal(flags, key.protocol);
    if (refusal != classify::kNoRule) {
      packet.set_result(classify::ClassifyResult{refusal});
      return;
    }
  }
  packet.set_result(classify::ClassifyResult{classify::find_rule(classify::tables_of(ctx), key)});
}
