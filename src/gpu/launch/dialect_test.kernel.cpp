// SPDX-License-Identifier: Apache-2.0
// Kernels that use each part of the dialect once. dialect_test.cpp says what must come out.
// Mapping: one packet per CATENA_LANES work-items.
#include <catena/kernel/context.hpp>

#include "gpu/launch/dialect_test.layout.hpp"

using namespace catena;
using namespace catena::kernel;
using namespace catena::kernel::dialect_test;

/// Writes what it is given to one element after the other.
class Appender {
 public:
  explicit Appender(IsoPtr<u64> out) : out_(out) {}
  void operator()(u64 value) { out_.set(at_++, value); }

 private:
  IsoPtr<u64> out_;
  u64 at_ = 0;
};

// wide[i] = layout i
CATENA_KERNEL(layouts) {
  if (global_id() == 0) {
    put_layouts(Appender(ctx.array(ctx.state<State>().wide)));
  }
}

// wide[row * 20 + k] = field k; every written field = row + a constant
CATENA_KERNEL(fields) {
  const PacketView packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const u32 row = packet.row();
  Appender put(ctx.array(ctx.state<State>().wide).sub(u64{20} * row, 20));
  put(packet.get<packet::kEthDst>());
  put(packet.get<packet::kIpv4Version>());
  put(packet.get<packet::kIpv4Length>());
  put(packet.get<packet::kIpv4Src>());
  put(packet.get<packet::kL4Sport>());
  put(packet.get<packet::kTcpSeq>());
  const Address6 address = packet.get<packet::kIpv6Dst>();
  put(address.high);
  put(address.low);
  put(packet.get<packet::kMetaVerdict>());
  put(packet.get<packet::kMetaPort>());
  put(packet.get<packet::kMetaLength>());
  put(packet.get<packet::kMetaOffset>());
  const packet::Layers layers = packet.layers();
  put(layers.l3 | layers.l4 << 8 | layers.payload << 16);
  put(static_cast<u32>(layers.flags) | static_cast<u32>(layers.payload_length) << 16);
  put(static_cast<u32>(layers.family));
  const Aux aux = packet.aux<Aux>();
  put(aux.first);
  put(static_cast<u32>(aux.second) | static_cast<u32>(aux.third) << 16 | static_cast<u32>(aux.fourth) << 24);

  packet.set<packet::kEthSrc>(u64{0x010203040500} + row);
  packet.set<packet::kIpv4Ttl>(static_cast<u8>(100 + row));
  packet.set<packet::kIpv4Id>(static_cast<u16>(0x1200 + row));
  packet.set<packet::kIpv4Dst>(0xC0A80000U + row);
  packet.set<packet::kIpv6Src>({u64{0x20010DB800000000} + row, u64{0x1122334455667700} + row});
  packet.set<packet::kL4Dport>(static_cast<u16>(0x3400 + row));
  packet.set<packet::kMetaVerdict>(static_cast<u8>(row));
  packet.set<packet::kMetaPort>(static_cast<u16>(0x5600 + row));
  packet.set<packet::kMetaLength>(static_cast<u16>(0x7800 + row));
  packet.set_result(Output{{row, row + 1, row + 2, row + 3, row + 4, row + 5, row + 6, row + 7}});
}

// Each payload byte ^ 0xFF, the byte before it and the byte after it = row; result = words of the payload; spill = row
CATENA_KERNEL(payloads) {
  const PacketView packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const u8 mark = static_cast<u8>(packet.row());
  const Bytes payload = packet.payload();
  const i32 length = static_cast<i32>(payload.length());
  const IsoPtr<u32> result = packet.result_array<u32>();
  result.set(0, payload.be32(0));
  result.set(1, payload.be16(1));
  result.set(2, payload.from(3)[0]);
  result.set(3, payload.from(3).length());
  for (i32 i = 0; i < 4; ++i) {  // at each alignment
    result.set(static_cast<u64>(4 + i), payload.be32(i));
  }
  for (i32 i = 0; i < length; ++i) {
    payload.set(i, static_cast<u8>(payload[i] ^ 0xFFU));
  }
  payload.set(-1, mark);
  payload.set(length, mark);
  payload.set_be16(-3, static_cast<u16>(0xAB00U + mark));
  payload.set_be32(length + 1, 0xCDEF0000U + mark);
  const IsoPtr<u32> spill = packet.spill<u32>();
  for (u64 i = 0; i < spill.size(); ++i) {
    spill.set(i, 0x51110000U + packet.row());
  }
}

// Words at each alignment: result = two words from bytes 0 .. 3 each, of which `row` were asked for; three words are
// written at byte 16, 33, 50, 67.
CATENA_KERNEL(words) {
  const PacketView packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const Bytes payload = packet.payload();
  const IsoPtr<u32> result = packet.result_array<u32>();
  for (u32 i = 0; i < 4; ++i) {
    const catena::kernel::Fetched<2> fetched = payload.fetch<2>(static_cast<i32>(i), packet.row());
    result.set(2 * i, fetched[0]);
    result.set(2 * i + 1, fetched[1]);
  }
  for (u32 i = 0; i < 4; ++i) {
    const u32 words[3] = {0x01020304U + i, 0x11121314U + i, 0x21222324U + packet.row()};
    payload.put<3>(static_cast<i32>(16 + 17 * i), words);
  }
}

// One packet reaches out of bounds as the state says; every packet then writes its result.
CATENA_KERNEL(reach) {
  const PacketView packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const State state = ctx.state<State>();
  const IsoPtr<u32> words = ctx.array(state.words);
  const Bytes payload = packet.payload();
  const i32 length = static_cast<i32>(payload.length());
  u32 seen = 0;
  if (packet.row() == state.row) {
    switch (state.access) {
      case kArrayRead:
        seen = words[words.size()];
        break;
      case kArrayLookUp: {
        auto look_up = words.lookups();
        const u32 beyond = static_cast<u32>(words.size());
        seen = look_up[beyond] + look_up[beyond + 1] + look_up[beyond];  // reported when look_up ends
        break;
      }
      case kArrayWrite:
        words.set(words.size() + 1, 1);
        break;
      case kArrayAdd:
        seen = words.add(words.size() + 2, 1);
        break;
      case kArraySub:
        words.sub(1, words.size());
        break;
      case kArrayElsewhere:
        ctx.array(state.elsewhere).set(0, 1);
        break;
      case kArrayUnaligned:
        ctx.array(state.unaligned).set(0, 1);
        break;
      case kPayloadBe16:
        seen = payload.be16(length + static_cast<i32>(CATENA_TAILROOM) - 1);
        break;
      case kPayloadSetBe16:
        payload.set_be16(length + static_cast<i32>(CATENA_TAILROOM) - 1, 1);
        break;
      case kPayloadRead:
        seen = payload[length + static_cast<i32>(CATENA_TAILROOM)];
        break;
      case kPayloadWrite:
        payload.set(length + static_cast<i32>(CATENA_TAILROOM), 1);
        break;
      case kPayloadBefore:
        payload.set(-1 - static_cast<i32>(CATENA_HEADROOM), 1);
        break;
      case kPayloadBe32:
        seen = payload.be32(length + static_cast<i32>(CATENA_TAILROOM) - 3);
        break;
      case kPayloadSetBe32:
        payload.set_be32(length + static_cast<i32>(CATENA_TAILROOM) - 1, 1);
        break;
      case kPayloadSetBe32Before:
        payload.set_be32(-2 - static_cast<i32>(CATENA_HEADROOM), 1);
        break;
      case kPayloadFetch: {
        const auto fetched = payload.fetch<4>(length + static_cast<i32>(CATENA_TAILROOM) - 7, 2);
        seen = fetched[0] | fetched[1];
        break;
      }
      case kPayloadPut: {
        const u32 two[2] = {1, 2};
        payload.put<2>(length + static_cast<i32>(CATENA_TAILROOM) - 7, two);
        break;
      }
      case kResult:
        packet.result_array<u32>().set(8, 1);
        break;
      case kSpill:
        packet.spill<u32>().set(packet.spill<u32>().size(), 1);
        break;
      case kLocal:
        ctx.local<u32>(0, 4).set(4, 1);
        break;
      case kLocalElsewhere:
        ctx.local<u32>(0, 1U << 28).set(0, 1);
        break;
      case kBigState:
        seen = static_cast<u32>(ctx.state<BigState>().values[0]);
        break;
      default:
        break;
    }
  }
  packet.result_array<u32>().set(0, 0x600D0000U + packet.row());
  packet.result_array<u32>().set(1, seen);
}

// words[global id] = the local id of the work-item on the other end of the group, told through local memory
CATENA_KERNEL(reverse) {
  const IsoPtr<u32> shared = ctx.local<u32>(0, group_size());
  const IsoPtr<u32> words = ctx.array(ctx.state<State>().words);
  for (u32 round = 0; round < 3; ++round) {
    shared.set(local_id(), local_id() + 1000 * round);
    barrier_all();
    words.set(global_id(), shared[group_size() - 1 - local_id()]);
    barrier_all();
  }
}

// words[0]: how many work-items; words[1]: the same, counted in local memory first; words[2 + n]: who came n-th
CATENA_KERNEL(atomics) {
  const IsoPtr<u32> words = ctx.array(ctx.state<State>().words);
  const IsoPtr<u32> shared = ctx.local<u32>(0, 1);
  if (local_id() == 0) {
    shared.set(0, 0);
  }
  barrier_all();
  words.set(2 + words.add(0, 1), global_id());
  shared.add(0, 1);
  barrier_all();
  if (local_id() == 0) {
    words.add(1, shared[0]);
  }
}

// wide[i * 4 ..] = byte_swap, rotate_left, count_ones, lowest_bit of words[i]
CATENA_KERNEL(primitives) {
  const State state = ctx.state<State>();
  const u32 id = global_id();
  const IsoPtr<u64> wide = ctx.array(state.wide);
  const u32 value = ctx.array(state.words)[id];
  wide.set(u64{4} * id, byte_swap(value));
  wide.set(u64{4} * id + 1, rotate_left(value, id % 32));
  wide.set(u64{4} * id + 2, count_ones(value));
  wide.set(u64{4} * id + 3, value == 0 ? 99 : lowest_bit(value));
}

// words[global id] = row and lane
CATENA_KERNEL(lanes) { ctx.array(ctx.state<State>().words).set(global_id(), ctx.packet().row() << 16 | ctx.lane()); }
