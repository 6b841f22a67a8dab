// SPDX-License-Identifier: Apache-2.0
// CATENA_LANES work-items per packet. Reads the packet, writes header and new text to its spill area, which begins as
// the packet does, and a CipherResult. They share the AES blocks: lane i takes blocks i, i + lanes, ... The HMAC, which
// is sequential, the first work-items of the group compute, one a packet. A packet too short for its text is left
// alone. Local memory: the AES table. No result depends on the number of lanes.
#include <catena/kernel/context.hpp>

#include "aes128.kernel.hpp"
#include "cipher.layout.hpp"
#include "hmac_sha1.kernel.hpp"
#include "ipsec.layout.hpp"

namespace catena::nca {

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
  const ipsec::KeyStream stream{table, ipsec::load_round_keys(keys, ipsec::kRoundKeys), keys[ipsec::kSalt], in.be32(iv),
                                in.be32(iv + 4)};
  for (u32 number = ctx.lane(); state.text_offset + number * 16 < covered; number += CATENA_LANES) {
    const ipsec::Block key = stream.block(number);
    CATENA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 at = state.text_offset + number * 16 + 4 * i;
      if (at + 4 <= covered) {
        out.set_be32(at, in.be32(static_cast<i32>(at)) ^ key.words[i]);
      } else {
        for (u32 byte = 0; at + byte < covered; ++byte) {
          out.set(at + byte, static_cast<u8>(in[static_cast<i32>(at + byte)] ^ (key.words[i] >> (24 - 8 * byte))));
        }
      }
    }
  }
}

/// Word at byte `at` of a message of `length` bytes, with the end mark behind it (FIPS 180-4 section 5.1.1).
/// `word_at(i)` and `byte_at(i)` are the message.
template <typename WordAt, typename ByteAt>
inline u32 padded_word(u32 at, u32 length, WordAt word_at, ByteAt byte_at) {
  if (at + 4 <= length) {
    return word_at(at);
  }
  u32 word = 0;
  for (u32 i = at; i < at + 4; ++i) {
    const u32 byte = i < length ? static_cast<u32>(byte_at(i)) : i == length ? 0x80U : 0U;
    word = (word << 8) | byte;
  }
  return word;
}

/// HMAC-SHA1 of a message of any length; ipsec::hmac_sha1() takes multiples of 4. The last turn of the loop is the
/// outer hash, so that the unrolled rounds exist once.
template <typename WordAt, typename ByteAt>
inline ipsec::Sha1State hmac(IsoPtr<u32> keys, u32 length, WordAt word_at, ByteAt byte_at) {
  constexpr u32 kDigestBytes = 20;
  constexpr u32 kEndBytes = 1 + 8;  // the end mark, and the length in bits
  const u32 blocks = (length + kEndBytes + ipsec::kSha1BlockBytes - 1) / ipsec::kSha1BlockBytes;
  ipsec::Sha1State state = ipsec::load_sha1_state(keys, ipsec::kInnerState);
  for (u32 number = 0; number <= blocks; ++number) {
    const bool is_outer = number == blocks;
    u32 block[16];
    CATENA_UNROLL
    for (u32 i = 0; i < 16; ++i) {
      block[i] = is_outer ? 0 : padded_word(number * ipsec::kSha1BlockBytes + 4 * i, length, word_at, byte_at);
    }
    if (is_outer) {
      CATENA_UNROLL
      for (u32 i = 0; i < 5; ++i) {
        block[i] = state.words[i];
      }
      block[5] = 0x80000000U;
      state = ipsec::load_sha1_state(keys, ipsec::kOuterState);
    }
    if (number + 1 >= blocks) {
      block[15] = 8 * (ipsec::kSha1BlockBytes + (is_outer ? kDigestBytes : length));  // the block of the key counts
    }
    ipsec::sha1_block(state, block);
  }
  return state;
}

/// The HMAC covers what travels: the ciphertext.
inline void sign(Context const& ctx, CipherState const& state, PacketView const& packet) {
  const Bytes in = packet.payload();
  const IsoPtr<u8> out = packet.spill<u8>();
  const IsoPtr<u32> keys = ctx.array(state.keys);
  const u32 covered = covered_bytes(state, in.length());
  CipherResult result{{0, 0, 0}};
  if (covered != 0) {
    const bool decrypts = state.decrypts != 0;
    const ipsec::Sha1State digest = hmac(
        keys, covered, [&](u32 i) { return decrypts ? in.be32(static_cast<i32>(i)) : out.be32(i); },
        [&](u32 i) { return decrypts ? in[static_cast<i32>(i)] : out[i]; });
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
