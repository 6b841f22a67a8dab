// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/context.hpp>

/// AES-128 in counter mode on a device (FIPS 197, RFC 3686). One 256-word table, kept in local memory: entry x holds
/// the S-box value s of x as the column (2s, s, s, 3s); the other three tables of the usual method are its rotations.
/// Callers check table.size() first. A compiler that has seen the 256 words needs no check of an 8-bit index.
namespace catena::cipher {

using kernel::Bytes;
using kernel::IsoPtr;

struct RoundKeys {
  u32 words[44];
};

/// `first`: position of the 44 words of the key schedule in `state`.
inline RoundKeys load_round_keys(IsoPtr<u32> state, u32 first) {
  RoundKeys keys{};
  state.read<44>(first, keys.words);
  return keys;
}

inline constexpr u32 kAesBlockBytes = 16;
inline constexpr u32 kAesBlockWords = kAesBlockBytes / 4;

struct Block {
  u32 words[kAesBlockWords];  ///< big-endian columns
};

/// One column of SubBytes, ShiftRows and MixColumns.
inline u32 mixed_column(IsoPtr<u32> table, u32 a, u32 b, u32 c, u32 d) {
  return table[a >> 24] ^ kernel::rotate_left(table[(b >> 16) & 0xFFU], 24) ^
         kernel::rotate_left(table[(c >> 8) & 0xFFU], 16) ^ kernel::rotate_left(table[d & 0xFFU], 8);
}
/// One column of the last round, without MixColumns.
inline u32 plain_column(IsoPtr<u32> table, u32 a, u32 b, u32 c, u32 d) {
  return ((table[a >> 24] << 16) & 0xFF000000U) | ((table[(b >> 16) & 0xFFU] << 8) & 0x00FF0000U) |
         (table[(c >> 8) & 0xFFU] & 0x0000FF00U) | ((table[d & 0xFFU] >> 8) & 0x000000FFU);
}

inline Block aes128_encrypt(IsoPtr<u32> table, RoundKeys const& keys, Block const& in) {
  u32 a = in.words[0] ^ keys.words[0];
  u32 b = in.words[1] ^ keys.words[1];
  u32 c = in.words[2] ^ keys.words[2];
  u32 d = in.words[3] ^ keys.words[3];
  CATENA_UNROLL
  for (u32 round = 1; round < 10; ++round) {
    const u32 next_a = mixed_column(table, a, b, c, d) ^ keys.words[4 * round];
    const u32 next_b = mixed_column(table, b, c, d, a) ^ keys.words[4 * round + 1];
    const u32 next_c = mixed_column(table, c, d, a, b) ^ keys.words[4 * round + 2];
    const u32 next_d = mixed_column(table, d, a, b, c) ^ keys.words[4 * round + 3];
    a = next_a;
    b = next_b;
    c = next_c;
    d = next_d;
  }
  return {{plain_column(table, a, b, c, d) ^ keys.words[40], plain_column(table, b, c, d, a) ^ keys.words[41],
           plain_column(table, c, d, a, b) ^ keys.words[42], plain_column(table, d, a, b, c) ^ keys.words[43]}};
}

/// Key stream of RFC 3686 section 4: nonce, IV, block counter from 1.
struct KeyStream {
  IsoPtr<u32> table;
  RoundKeys keys{};
  u32 salt;
  u32 iv_high;
  u32 iv_low;

  Block block(u32 number) const { return aes128_encrypt(table, keys, {{salt, iv_high, iv_low, number + 1}}); }
};

}  // namespace catena::cipher
