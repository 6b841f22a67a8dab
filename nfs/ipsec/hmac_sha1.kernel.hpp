// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/context.hpp>

/// HMAC-SHA1 on a device (FIPS 180-4, RFC 2104), from the two states that the key leads to.
namespace catena::ipsec {

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

/// Word at byte `at` of the padded end of a message of `length` bytes that starts at `first`: message, 0x80, zeros.
inline u32 padded_word(kernel::Bytes message, i32 first, u32 length, u32 at) {
  if (at + 4 <= length) {
    return message.be32(first + static_cast<i32>(at));
  }
  u32 word = 0;
  for (u32 i = at; i < at + 4; ++i) {
    u32 byte = i == length ? 0x80U : 0U;
    if (i < length) {
      byte = message[first + static_cast<i32>(i)];
    }
    word = (word << 8) | byte;
  }
  return word;
}

/// The whole 20-byte HMAC of bytes [first, first + length).
inline Sha1State hmac_sha1(kernel::Bytes message, i32 first, u32 length, Sha1State inner, Sha1State outer) {
  constexpr u32 kBlockBytes = 64;
  constexpr u32 kLengthBytes = 8;
  const u32 end = (length + 1 + kLengthBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  u32 block[16];
  for (u32 at = 0; at < end; at += kBlockBytes) {
    if (at + kBlockBytes <= length) {
      CATENA_UNROLL
      for (u32 i = 0; i < 16; ++i) {
        block[i] = message.be32(first + static_cast<i32>(at + 4 * i));
      }
    } else {
      CATENA_UNROLL
      for (u32 i = 0; i < 16; ++i) {
        block[i] = padded_word(message, first, length, at + 4 * i);
      }
      if (at + kBlockBytes == end) {
        block[15] = 8 * (kBlockBytes + length);  // the block of the key counts
      }
    }
    sha1_block(inner, block);
  }
  CATENA_UNROLL
  for (u32 i = 0; i < 5; ++i) {
    block[i] = inner.words[i];
  }
  block[5] = 0x80000000U;
  CATENA_UNROLL
  for (u32 i = 6; i < 15; ++i) {
    block[i] = 0;
  }
  block[15] = 8 * (kBlockBytes + 20);
  sha1_block(outer, block);
  return outer;
}

}  // namespace catena::ipsec
