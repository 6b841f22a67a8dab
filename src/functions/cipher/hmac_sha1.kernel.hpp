// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/context.hpp>

/// HMAC-SHA1 on a device (FIPS 180-4, RFC 2104), from the two states derived from the key.
namespace catena::cipher {

inline constexpr u32 kSha1BlockBytes = 64;

struct Sha1State {
  u32 words[5];
};

/// `first`: position of the 5 words in `state`.
inline Sha1State load_sha1_state(kernel::IsoPtr<u32> state, u32 first) {
  Sha1State loaded{};
  state.read<5>(first, loaded.words);
  return loaded;
}

/// f and K of round `round` (FIPS 180-4 sections 4.1.1 and 4.2.1). The loop over rounds is unrolled, so this is
/// constant.
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

/// Adds one block of 16 words to the state; the schedule is computed in the block.
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
    // only the last sum waits for the previous round
    const u32 next = kernel::rotate_left(a, 5) + (sha1_mix(round, b, c, d) + (e + word));
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

using FetchedBlock = kernel::Fetched<kSha1BlockBytes / 4>;

/// Requests the whole words of block `number` of the message, and no words after its end.
inline FetchedBlock fetch_block(kernel::Bytes message, u32 length, u32 number) {
  const u32 begin = number * kSha1BlockBytes;
  const u32 rest = begin < length ? length - begin : 0;
  return message.fetch<kSha1BlockBytes / 4>(static_cast<i32>(begin),
                                            rest < kSha1BlockBytes ? rest / 4 : kSha1BlockBytes / 4);
}

/// The word after the whole words of a message: its remaining bytes, and the end mark (FIPS 180-4 section 5.1.1).
inline u32 end_word(kernel::Bytes message, u32 length) {
  const u32 left = length % 4;
  u32 word = 0x80000000U >> (8 * left);
  for (u32 i = 0; i < left; ++i) {
    word |= static_cast<u32>(message[static_cast<i32>(length - left + i)]) << (24 - 8 * i);
  }
  return word;
}

/// The whole 20-byte HMAC of the first `length` bytes of `message`. The last iteration of the loop is the outer hash,
/// so that the unrolled rounds exist once. Each block is requested before the rounds of the previous block. They hide
/// the memory latency, because no other work-item runs meanwhile.
inline Sha1State hmac_sha1(kernel::Bytes message, u32 length, Sha1State inner, Sha1State outer) {
  constexpr u32 kDigestBytes = 20;
  constexpr u32 kEndBytes = 1 + 8;  // the end mark, and the length in bits
  const u32 blocks = (length + kEndBytes + kSha1BlockBytes - 1) / kSha1BlockBytes;
  const u32 last_word = end_word(message, length);
  Sha1State state = inner;
  FetchedBlock fetched = fetch_block(message, length, 0);
  for (u32 number = 0; number <= blocks; ++number) {
    const bool is_outer = number == blocks;
    u32 block[16]{};
    if ((number + 1) * kSha1BlockBytes <= length) {
      CATENA_UNROLL
      for (u32 i = 0; i < 16; ++i) {
        block[i] = fetched.word(i);
      }
    } else {
      CATENA_UNROLL
      for (u32 i = 0; i < 16; ++i) {
        block[i] = number * kSha1BlockBytes / 4 + i == length / 4 ? last_word : fetched[i];
      }
    }
    if (is_outer) {  // nothing was fetched
      CATENA_UNROLL
      for (u32 i = 0; i < 5; ++i) {
        block[i] = state.words[i];
      }
      block[5] = 0x80000000U;
      state = outer;
    }
    if (number + 1 >= blocks) {
      block[15] = 8 * (kSha1BlockBytes + (is_outer ? kDigestBytes : length));  // the key's block counts
    }
    fetched = fetch_block(message, length, number + 1);
    sha1_block(state, block);
  }
  return state;
}

}  // namespace catena::cipher
