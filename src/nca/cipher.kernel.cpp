// SPDX-License-Identifier: Apache-2.0
// CATENA_LANES work-items per packet. Reads the packet, writes header and new text to its spill area, which begins as
// the packet does, and a CipherResult. They share the AES blocks: lane i takes blocks i, i + lanes, ... The HMAC, which
// is sequential, the first work-items of the group compute, one a packet. A packet too short for its text is left
// alone. Local memory: the AES table. No result depends on the number of lanes.
#include <catena/kernel/context.hpp>

#include "cipher.layout.hpp"
#include "functions/cipher/aes128.kernel.hpp"
#include "functions/cipher/cipher.layout.hpp"
#include "functions/cipher/hmac_sha1.kernel.hpp"

namespace catena::nca {

using cipher::kAesBlockBytes;
using cipher::kAesBlockWords;
using kernel::Bytes;
using kernel::Context;
using kernel::IsoPtr;
using kernel::PacketView;

/// Bytes of header and text, or 0 where the packet is too short for them.
inline u32 covered_bytes(CipherState const& state, u32 length) {
  const u32 icv = state.decrypts != 0 ? kCipherIcvBytes : 0;
  return length < state.text_offset + icv ? 0 : length - icv;
}

inline void crypt(Context const& ctx, CipherState const& state, PacketView const& packet) {
  const Bytes in = packet.payload();
  const IsoPtr<u8> out = packet.spill<u8>();
  const u32 covered = covered_bytes(state, in.length());
  const IsoPtr<u32> table = ctx.local<u32>(0, kCipherTableWords);
  const IsoPtr<u32> keys = ctx.array(state.keys);
  if (covered == 0 || table.size() != kCipherTableWords) {
    return;
  }
  for (u32 i = ctx.lane(); i < state.text_offset; i += CATENA_LANES) {
    out.set(i, in[static_cast<i32>(i)]);
  }
  const i32 iv = static_cast<i32>(state.iv_offset);
  const cipher::KeyStream stream{table, cipher::load_round_keys(keys, cipher::kRoundKeys), keys[cipher::kSalt],
                                 in.be32(iv), in.be32(iv + 4)};
  for (u32 number = ctx.lane(); state.text_offset + number * kAesBlockBytes < covered; number += CATENA_LANES) {
    const u32 at = state.text_offset + number * kAesBlockBytes;
    const u32 rest = covered - at;
    // asked for before the rounds, which hide the way from memory
    const kernel::Fetched<kAesBlockWords> fetched =
        in.fetch<kAesBlockWords>(static_cast<i32>(at), rest < kAesBlockBytes ? 0 : kAesBlockWords);
    const cipher::Block key = stream.block(number);
    if (rest >= kAesBlockBytes) {
      u32 words[kAesBlockWords]{};
      CATENA_UNROLL
      for (u32 i = 0; i < kAesBlockWords; ++i) {
        words[i] = fetched.word(i) ^ key.words[i];
      }
      out.put<kAesBlockWords>(at, words);
      continue;
    }
    CATENA_UNROLL
    for (u32 i = 0; i < kAesBlockBytes; ++i) {
      if (i < rest) {
        out.set(at + i, static_cast<u8>(in[static_cast<i32>(at + i)] ^ (key.words[i / 4] >> (24 - 8 * (i % 4)))));
      }
    }
  }
}

/// The HMAC covers what travels: the ciphertext.
inline void sign(Context const& ctx, CipherState const& state, PacketView const& packet) {
  const Bytes in = packet.payload();
  const IsoPtr<u32> keys = ctx.array(state.keys);
  const u32 covered = covered_bytes(state, in.length());
  CipherResult result{{0, 0, 0}};
  if (covered != 0) {
    const Bytes out = packet.spill_bytes(covered);
    const cipher::Sha1State digest =
        cipher::hmac_sha1(state.decrypts != 0 ? in : out, covered, cipher::load_sha1_state(keys, cipher::kInnerState),
                          cipher::load_sha1_state(keys, cipher::kOuterState));
    for (u32 i = 0; i < 3; ++i) {
      result.icv[i] = digest.words[i];
    }
  }
  packet.set_result(result);
}

}  // namespace catena::nca

CATENA_KERNEL(nca_cipher) {
  using namespace catena;
  const nca::CipherState state = ctx.state<nca::CipherState>();
  const auto table = ctx.local<u32>(0, nca::kCipherTableWords);
  const auto source = ctx.array(state.t_table);
  for (u32 i = kernel::local_id(); i < nca::kCipherTableWords; i += kernel::group_size()) {
    table.set(i, source[i]);
  }
  kernel::barrier_all();
  const auto packet = ctx.packet();
  if (packet.valid()) {
    nca::crypt(ctx, state, packet);
  }
  kernel::barrier_all();
  const u32 mine = kernel::local_id();
  if (mine < ctx.group_packets()) {
    const auto own = ctx.for_group_packet(mine);
    const auto whole = own.packet();
    if (whole.valid()) {
      nca::sign(own, state, whole);
    }
  }
}
