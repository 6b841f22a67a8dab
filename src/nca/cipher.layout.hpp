// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

namespace catena::nca {

inline constexpr u32 kCipherIcvBytes = 12;
inline constexpr u32 kCipherTableWords = 256;

/// Header of the state of NCA_CIPHER's kernel.
struct CipherState {
  kernel::StateArray<u32> t_table;  ///< see aes128.kernel.hpp
  kernel::StateArray<u32> keys;     ///< cipher::KeyWord
  u32 text_offset;
  u32 iv_offset;
  u32 decrypts;
  u32 reserved;
};
static_assert(sizeof(CipherState) == 48);

/// The ICV of a packet's header and ciphertext, as three big-endian words.
struct CipherResult {
  u32 icv[3];
};
static_assert(sizeof(CipherResult) == 12);

}  // namespace catena::nca
