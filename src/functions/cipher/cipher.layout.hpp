// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// AES-128-CTR with HMAC-SHA1-96 as in ESP (RFC 3686, RFC 2404): the part shared by host and kernels.
namespace catena::cipher {

inline constexpr u32 kEspBytes = 8;                       ///< SPI and sequence number
inline constexpr u32 kIvBytes = 8;                        ///< RFC 3686: explicit IV
inline constexpr u32 kIcvBytes = 12;                      ///< RFC 2404: HMAC-SHA1 cut to 96 bits
inline constexpr u32 kExtensionBytes = 4;                 ///< RFC 4303 2.2.1: high half of a number, in the ICV only
inline constexpr u32 kTextOffset = kEspBytes + kIvBytes;  ///< from the ESP header to the text

/// Words of the AES table in local memory: see aes128.kernel.hpp.
inline constexpr u32 kTableWords = 256;

/// Positions of the words of a key on a device.
enum KeyWord : u32 {
  kRoundKeys = 0,    ///< 44: AES-128 key schedule, big-endian columns
  kSalt = 44,        ///< RFC 3686 nonce
  kInnerState = 45,  ///< 5: SHA-1 state after the block key ^ ipad
  kOuterState = 50,  ///< 5: after key ^ opad
  kKeyWords = 55,
};

}  // namespace catena::cipher
