// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/context.hpp>

/// HMAC-SHA1 on a device (FIPS 180-4, RFC 2104), from the two states that the key leads to.
namespace catena::ipsec {

inline constexpr u32 kSha1BlockBytes = 64;

struct Sha1State {
  u32 words[5];
};

/// `first`: position of the 5 words in `state`.
inline Sha1State load_sha1_state(kernel::IsoPtr<u32> state, u32 first) {
  Sha1State loaded;
  CATENA_UNROLL
  for (u32 i = 0; i < 5; ++i) {
    loaded.words[i] = state[first + i];
  }
  return loaded;
}

/// f and K of round `round` (FIPS 180-4 sections 4.1.1 and 4.2.1). The loop over rounds is unrolled, so this folds.
inline u32 sha1_mix(u32 round, u32 b, u32 c, u32 d) {
  if (round < 20) {
    return (d ^ (b & (c ^ d))) + 0x5A827999U;
  }
  if (round < 40) {
    return (b ^ c ^ d) + 0x6ED9EBA1U;
  }
  if (round < 60) {
    return ((b & c) | (d & (b | c))) + 0x8F1BBCDCU;
  }
  return (b ^ c ^ d) + 0xCA62C1D6U;
}

/// Takes one block of 16 words into the state; the schedule is computed in the block.
inline void sha1_block(Sha1State& state, u32 (&block)[16]) {
  u32 a = state.words[0];
  u32 b = state.words[1];
  u32 c = state.words[2];
  u32 d = state.words[3];
  u32 e = state.words[4];
  CATENA_UNROLL
  for (u32 round = 0; round < 80; ++round) {
    u32& word = block[round % 16];
    if (round >= 16) {
      word =
          kernel::rotate_left(block[(round + 13) % 16] ^ block[(round + 8) % 16] ^ block[(round + 2) % 16] ^ word, 1);
    }
    const u32 next = kernel::rotate_left(a, 5) + sha1_mix(round, b, c, d) + e + word;
    e = d;
    d = c;
    c = kernel::rotate_left(b, 30);
    b = a;
    a = next;
  }
  state.words[0] += a;
  state.words[1] += b;
  state.words[2] += c;
  state.words[3] += d;
  state.words[4] += e;
}

/// Block `number` of the message, with the end mark where it belongs; behind the message zeros.
inline void load_block(kernel::Bytes message, i32 first, u32 length, u32 number, u32 (&block)[16]) {
  CATENA_UNROLL
  for (u32 i = 0; i < 16; ++i) {
    const u32 at = number * kSha1BlockBytes + 4 * i;
    block[i] = at == length ? 0x80000000U : 0U;
    if (at < length) {
      block[i] = message.be32(first + static_cast<i32>(at));
    }
  }
}

/// The whole 20-byte HMAC of bytes [first, first + length); `length` is a multiple of 4, as all that ESP signs. The
/// last turn of the loop is the outer hash, so that the unrolled rounds exist once; the first one only asks for the
/// first block. Each block is asked for before the rounds of the one before it, which hide the way from memory: nobody
/// else works while one work-item is here.
inline Sha1State hmac_sha1(kernel::Bytes message, i32 first, u32 length, Sha1State inner, Sha1State outer) {
  constexpr u32 kDigestBytes = 20;
  constexpr u32 kEndBytes = 4 + 8;  // the word with the end mark, and the length in bits
  const u32 blocks = (length + kEndBytes + kSha1BlockBytes - 1) / kSha1BlockBytes;
  Sha1State state = inner;
  u32 block[16];
  for (u32 asked = 0; asked <= blocks + 1; ++asked) {
    u32 next[16];
    load_block(message, first, length, asked, next);
    if (asked > 0) {
      const bool is_outer = asked > blocks;
      if (is_outer) {  // `block` holds zeros
        CATENA_UNROLL
        for (u32 i = 0; i < 5; ++i) {
          block[i] = state.words[i];
        }
        block[5] = 0x80000000U;
        state = outer;
      }
      if (asked >= blocks) {
        block[15] = 8 * (kSha1BlockBytes + (is_outer ? kDigestBytes : length));  // the block of the key counts
      }
      sha1_block(state, block);
    }
    CATENA_UNROLL
    for (u32 i = 0; i < 16; ++i) {
      block[i] = next[i];
    }
  }
  return state;
}

}  // namespace catena::ipsec
