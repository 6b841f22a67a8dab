// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

#include "functions/cipher/cipher.layout.hpp"

/// Shared by the host and the kernels of the ipsec NF: sizes, per-packet structs, and the words of a security
/// association on a device.
///
///     outer frame:  L2 | outer IPv4 (20) | [UDP (8)] | SPI, sequence (8) | IV (8) | text | ICV (12)
///     text:         inner IPv4 datagram, padding 1 2 3 .., pad length, next header; a multiple of 4 bytes
///     ICV over:     SPI, sequence, IV, text, and the high half of an extended sequence number after it
namespace catena::ipsec {

inline constexpr u32 kIpv4Bytes = 20;
inline constexpr u32 kUdpBytes = 8;
inline constexpr u32 kEspTrailerBytes = 2;  ///< pad length and next header
inline constexpr u32 kMaxPadBytes = 3;      ///< RFC 4303 2.4: text is a multiple of 4 bytes

inline constexpr u8 kNextHeaderIpv4 = 4;    ///< tunnel mode
inline constexpr u8 kNextHeaderDummy = 59;  ///< RFC 4303 2.6: traffic flow confidentiality, to be discarded

/// Maximum bytes added by encapsulation at the front and at the end of a frame.
inline constexpr u32 kMaxFrontBytes = kIpv4Bytes + kUdpBytes + cipher::kTextOffset;
inline constexpr u32 kMaxBackBytes = kMaxPadBytes + kEspTrailerBytes + cipher::kIcvBytes;

/// Action for a packet, chosen by prepare().
enum Action : u8 {
  kLeave = 0,            ///< decrypt only: not for a local tunnel, passes unchanged
  kProcess = 1,          ///< encapsulate or decapsulate
  kProcessExtended = 2,  ///< the same with an extended sequence number
};

/// Per-packet input. Offsets are from the first byte of the frame as it arrived.
struct Aux {
  u32 association;    ///< position in the SA file
  u32 sequence;       ///< ESP sequence number, assigned (encrypt) or received (decrypt); its low half if extended
  u32 sequence_high;  ///< the high half, assigned or inferred; else 0
  u16 shift;          ///< bytes between the outer and the inner IPv4 header
  u16 inner_length;   ///< encrypt: bytes of the datagram to protect
  u16 text_length;    ///< bytes to encrypt or decrypt
  u8 l3;              ///< offset of the IPv4 header on arrival
  u8 action;          ///< Action
};
static_assert(sizeof(Aux) == 20);

/// Result for a packet. 0 means not processed, so a packet lost in processing is dropped.
enum PacketStatus : u32 {
  kNotProcessed = 0,
  kDone = 1,
  kBadIcv = 2,
  kMalformedInner = 3,  ///< authentic, but not an IPv4 datagram in tunnel mode
  kDummy = 4,           ///< authentic, next header 59
  kCongested = 5,       ///< authentic, with a congestion mark that the inner packet cannot carry
};
struct PacketResult {
  u32 status;
};
static_assert(sizeof(PacketResult) == 4);

/// An association on a device has kAssociationWords words: first its keys (cipher::KeyWord), then these.
enum AssociationWord : u32 {
  kSpi = cipher::kKeyWords,
  kSource = 56,
  kDestination = 57,
  kPorts = 58,    ///< UDP source port << 16 | destination port; 0: no UDP encapsulation
  kTosKeep = 59,  ///< outer TOS = (inner TOS & kTosKeep) | kTosSet
  kTosSet = 60,
  kDfKeep = 61,  ///< outer flags = (inner flags & kDfKeep) | kDfSet
  kDfSet = 62,
  kTtl = 63,
  kAssociationWords = 64,
};

/// Header of the NF's state on a device.
struct DeviceState {
  kernel::StateArray<u32> t_table;       ///< 256: AES S-box and MixColumns of the first byte of a column
  kernel::StateArray<u32> associations;  ///< kAssociationWords each
};
static_assert(kSpi == 55);
static_assert(sizeof(DeviceState) == 32);

/// Words of each packet's inner header kept by encryption until the outer one is written: its first word, and its
/// flags.
inline constexpr u32 kKeptWords = 2;
/// Local memory of a group, in words: the table, then the kept words of each packet.
inline constexpr u32 local_words(u32 group_size, u32 lanes) {
  return cipher::kTableWords + kKeptWords * (group_size / lanes);
}

}  // namespace catena::ipsec
