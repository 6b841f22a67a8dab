// SPDX-License-Identifier: Apache-2.0
#include "functions/cipher/aes128.kernel.hpp"
#include "functions/cipher/hmac_sha1.kernel.hpp"
#include "ipsec.layout.hpp"

#include <catena/kernel/context.hpp>

// CATENA_LANES work-items per packet. They share the AES blocks: lane i takes blocks i, i + lanes, ... What is
// sequential, the HMAC and the headers, the first work-items of the group do, one a packet, between barriers that every
// work-item reaches. Local memory: local_words() words a group. Everything is done in place in the packet's frame. No
// result depends on the number of lanes.
namespace catena::ipsec {

using kernel::Bytes;
using kernel::Context;
using kernel::IsoPtr;
using kernel::PacketView;

/// Copies the AES table into local memory; every work-item of the group must call it.
inline void load_table(Context const& ctx) {
  const IsoPtr<u32> table = ctx.local<u32>(0, cipher::kTableWords);
  const IsoPtr<u32> source = ctx.array(ctx.state<DeviceState>().t_table);
  for (u32 i = kernel::local_id(); i < cipher::kTableWords; i += kernel::group_size()) {
    table.set(i, source[i]);
  }
  kernel::barrier_all();
}

/// The words of one association. Where the compiler has seen that there are as many as of one, no index needs a check;
/// otherwise this has reached out of bounds, and the packet is dropped for it.
inline IsoPtr<u32> association_of(Context const& ctx, u32 number) {
  return ctx.array(ctx.state<DeviceState>().associations)
      .sub(static_cast<u64>(number) * kAssociationWords, kAssociationWords);
}

/// The ICV over ESP header, IV and text. The high half of an extended sequence number is covered too: it is written
/// after the text for it, where the packet's ICV is or will be.
inline cipher::Sha1State icv_of(Bytes frame, i32 esp, Aux const& aux, IsoPtr<u32> association) {
  u32 length = cipher::kTextOffset + aux.text_length;
  if (aux.action == kProcessExtended) {
    frame.set_be32(esp + static_cast<i32>(length), aux.sequence_high);
    length += cipher::kExtensionBytes;
  }
  return cipher::hmac_sha1(frame.from(esp), length, cipher::load_sha1_state(association, cipher::kInnerState),
                           cipher::load_sha1_state(association, cipher::kOuterState));
}

/// RFC 1071: folds and complements.
inline u32 finish_checksum(u32 sum) {
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return ~sum & 0xFFFFU;
}

/// Words of an L2 header after the first two bytes: Ethernet and up to two VLAN tags, as packet::parse() takes them.
constexpr u32 kMaxL2Words = 5;

/// Copies the L2 header of `l3` bytes to where it is `by` bytes further on. All of it is read before any of it is
/// written: a read after a write would wait for memory alone. In front of an IPv4 header that is at a multiple of
/// 4 there are two bytes, then whole words.
inline void move_l2(Bytes frame, u32 l3, i32 by) {
  const u16 first = frame.be16(0);
  u32 words[kMaxL2Words]{};
  CATENA_UNROLL
  for (u32 i = 0; i < kMaxL2Words; ++i) {
    words[i] = 4 * i + 2 < l3 ? frame.be32(static_cast<i32>(4 * i + 2)) : 0;
  }
  frame.set_be16(by, first);
  CATENA_UNROLL
  for (u32 i = 0; i < kMaxL2Words; ++i) {
    if (4 * i + 2 < l3) {
      frame.set_be32(static_cast<i32>(4 * i + 2) + by, words[i]);
    }
  }
}

/// Completes the words from byte `at` of the text to encrypt: after the datagram come the padding 1 2 3, pad length
/// and next header. What the words hold there before does not count.
inline void add_trailer(Aux const& aux, u32 at, u32 (&words)[cipher::kAesBlockWords]) {
  const u32 pad = static_cast<u32>(aux.text_length) - aux.inner_length - kEspTrailerBytes;
  CATENA_UNROLL
  for (u32 k = 0; k < cipher::kAesBlockWords; ++k) {
    u32 word = 0;
    for (u32 i = at + 4 * k; i < at + 4 * k + 4; ++i) {
      u32 byte = i - aux.inner_length + 1;  // padding, unless one of the following
      if (i < aux.inner_length) {
        byte = (words[k] >> (24 - 8 * (i % 4))) & 0xFFU;
      } else if (i + 2 == aux.text_length) {
        byte = pad;
      } else if (i + 1 == aux.text_length) {
        byte = kNextHeaderIpv4;
      }
      word = (word << 8) | byte;
    }
    words[k] = word;
  }
}

/// Outer headers, ESP header and IV, in front of the datagram. `inner_word0`, `inner_flags`: of the inner IPv4 header,
/// which is encrypted by now.
inline void write_headers(Bytes frame, Aux const& aux, IsoPtr<u32> association, u32 inner_word0, u32 inner_flags) {
  move_l2(frame, aux.l3, -static_cast<i32>(aux.shift));
  const i32 ip = static_cast<i32>(aux.l3) - static_cast<i32>(aux.shift);
  const u32 ports = association[kPorts];
  const u32 total = static_cast<u32>(aux.shift) + aux.text_length + cipher::kIcvBytes;
  const u32 tos = ((inner_word0 >> 16) & association[kTosKeep]) | association[kTosSet];
  const u32 word0 = 0x45000000U | (tos << 16) | total;
  const u32 word1 = (aux.sequence << 16) | (inner_flags & association[kDfKeep]) | association[kDfSet];
  const u32 protocol = ports != 0 ? 17 : 50;
  const u32 word2 = (association[kTtl] << 24) | (protocol << 16);
  const u32 source = association[kSource];
  const u32 destination = association[kDestination];
  u32 sum = (word0 >> 16) + (word0 & 0xFFFFU) + (word1 >> 16) + (word1 & 0xFFFFU) + (word2 >> 16);
  sum += (source >> 16) + (source & 0xFFFFU) + (destination >> 16) + (destination & 0xFFFFU);
  frame.set_be32(ip, word0);
  frame.set_be32(ip + 4, word1);
  frame.set_be32(ip + 8, word2 | finish_checksum(sum));
  frame.set_be32(ip + 12, source);
  frame.set_be32(ip + 16, destination);
  const i32 esp = static_cast<i32>(aux.l3) - static_cast<i32>(cipher::kTextOffset);
  if (ports != 0) {
    frame.set_be32(esp - 8, ports);
    frame.set_be32(esp - 4, (total - kIpv4Bytes) << 16);  // no checksum: RFC 3948 section 2.1
  }
  frame.set_be32(esp, association[kSpi]);
  frame.set_be32(esp + 4, aux.sequence);
  frame.set_be32(esp + 8, aux.sequence_high);
  frame.set_be32(esp + 12, aux.sequence);
}

/// The ECN field of RFC 6040 section 4.2, with the checksum update of RFC 1624 equation 3. False, and nothing changed,
/// where the inner packet cannot carry the outer one's mark of congestion.
inline bool carry_ecn(Bytes frame, i32 outer, i32 inner) {
  constexpr u32 kEct1 = 1;
  constexpr u32 kEct0 = 2;
  constexpr u32 kCe = 3;
  const u32 before = frame.be16(inner);
  const u32 inner_ecn = before & 3U;
  const u32 outer_ecn = frame[outer + 1] & 3U;
  u32 ecn = inner_ecn;
  if (outer_ecn == kCe) {
    if (inner_ecn == 0) {
      return false;
    }
    ecn = kCe;
  } else if (outer_ecn == kEct1 && inner_ecn == kEct0) {
    ecn = kEct1;
  }
  if (ecn != inner_ecn) {
    const u32 after = (before & ~3U) | ecn;
    const u32 sum = (~static_cast<u32>(frame.be16(inner + 10)) & 0xFFFFU) + (~before & 0xFFFFU) + after;
    frame.set_be16(inner + 10, static_cast<u16>(finish_checksum(sum)));
    frame.set_be16(inner, static_cast<u16>(after));
  }
  return true;
}

/// Checks the decrypted text and moves the L2 header in front of the datagram in it. Sets `inner_length` if kDone.
inline u32 open_tunnel(Bytes frame, Aux const& aux, u32& inner_length) {
  const i32 inner = static_cast<i32>(aux.l3) + static_cast<i32>(aux.shift);
  const i32 trailer = inner + static_cast<i32>(aux.text_length - kEspTrailerBytes);
  const u8 next_header = frame[trailer + 1];
  if (next_header == kNextHeaderDummy) {
    return kDummy;
  }
  const u32 pad = frame[trailer];
  if (next_header != kNextHeaderIpv4 || pad + kEspTrailerBytes + kIpv4Bytes > aux.text_length) {
    return kMalformedInner;
  }
  const u32 room = aux.text_length - kEspTrailerBytes - pad;
  const u8 version = frame[inner];
  const u32 header = (version & 0x0FU) * 4U;
  const u32 total = frame.be16(inner + 2);
  if ((version >> 4) != 4 || header < kIpv4Bytes || total < header || total > room) {
    return kMalformedInner;
  }
  if (!carry_ecn(frame, aux.l3, inner)) {
    return kCongested;
  }
  move_l2(frame, aux.l3, aux.shift);
  inner_length = total;
  return kDone;
}

/// Runs this lane's share of the key stream over the text, in place. `known`: bytes of the text that are in the
/// frame; complete(at, words) adds the rest to the words from byte `at` on.
template <typename Complete>
inline void crypt_text(Context const& ctx, Bytes frame, i32 text, u32 text_length, u32 known, IsoPtr<u32> association,
                       u32 iv_high, u32 iv_low, Complete complete) {
  const IsoPtr<u32> table = ctx.local<u32>(0, cipher::kTableWords);
  if (table.size() != cipher::kTableWords || association.size() != kAssociationWords) {
    return;  // load_table() has reached out of bounds, and the packet is dropped for it
  }
  const cipher::KeyStream stream{table, cipher::load_round_keys(association, cipher::kRoundKeys),
                                 association[cipher::kSalt], iv_high, iv_low};
  for (u32 number = ctx.lane(); number * cipher::kAesBlockBytes < text_length; number += CATENA_LANES) {
    const u32 at = number * cipher::kAesBlockBytes;
    const u32 rest = at < known ? known - at : 0;
    // asked for before the rounds, which hide the way from memory
    const kernel::Fetched<cipher::kAesBlockWords> fetched = frame.fetch<cipher::kAesBlockWords>(
        text + static_cast<i32>(at), rest < cipher::kAesBlockBytes ? (rest + 3) / 4 : cipher::kAesBlockWords);
    const cipher::Block key = stream.block(number);
    u32 words[cipher::kAesBlockWords]{};
    CATENA_UNROLL
    for (u32 k = 0; k < cipher::kAesBlockWords; ++k) {
      words[k] = fetched[k];
    }
    complete(at, words);
    CATENA_UNROLL
    for (u32 k = 0; k < cipher::kAesBlockWords; ++k) {
      words[k] ^= key.words[k];
    }
    if (at + cipher::kAesBlockBytes <= text_length) {
      frame.put<cipher::kAesBlockWords>(text + static_cast<i32>(at), words);
      continue;
    }
    CATENA_UNROLL
    for (u32 k = 0; k < cipher::kAesBlockWords; ++k) {
      if (at + 4 * k < text_length) {
        frame.set_be32(text + static_cast<i32>(at + 4 * k), words[k]);
      }
    }
  }
}

/// What is kept of packet `i` of the group.
inline IsoPtr<u32> kept_words(Context const& ctx, u32 i) {
  return ctx.local<u32>(4 * (cipher::kTableWords + kKeptWords * i), kKeptWords);
}

inline void encrypt_text(Context const& ctx, PacketView const& packet) {
  const Aux aux = packet.aux<Aux>();
  const Bytes frame = packet.frame();
  if (ctx.lane() == 0) {  // it encrypts the block that holds these, so it reads them in time
    const IsoPtr<u32> kept = kept_words(ctx, kernel::local_id() / CATENA_LANES);
    kept.set(0, frame.be32(aux.l3));
    kept.set(1, frame.be16(static_cast<i32>(aux.l3) + 6));
  }
  crypt_text(ctx, frame, aux.l3, aux.text_length, aux.inner_length, association_of(ctx, aux.association),
             aux.sequence_high, aux.sequence, [&](u32 at, u32(&words)[cipher::kAesBlockWords]) {
               if (at + cipher::kAesBlockBytes > aux.inner_length) {
                 add_trailer(aux, at, words);
               }
             });
}

inline void finish_encrypt(Context const& ctx, PacketView const& packet, IsoPtr<u32> kept) {
  const Aux aux = packet.aux<Aux>();
  const Bytes frame = packet.frame();
  const IsoPtr<u32> association = association_of(ctx, aux.association);
  if (association.size() != kAssociationWords) {
    return;
  }
  write_headers(frame, aux, association, kept[0], kept[1]);
  const i32 esp = static_cast<i32>(aux.l3) - static_cast<i32>(cipher::kTextOffset);
  const cipher::Sha1State icv = icv_of(frame, esp, aux, association);
  for (i32 i = 0; i < 3; ++i) {
    frame.set_be32(static_cast<i32>(aux.l3 + aux.text_length) + 4 * i, icv.words[i]);
  }
  packet.set<packet::kMetaOffset>(static_cast<u16>(packet.get<packet::kMetaOffset>() - aux.shift));
  packet.set<packet::kMetaLength>(static_cast<u16>(u32{aux.l3} + aux.shift + aux.text_length + cipher::kIcvBytes));
  packet.set_result(PacketResult{kDone});
}

inline bool has_good_icv(Context const& ctx, PacketView const& packet) {
  const Aux aux = packet.aux<Aux>();
  if (aux.action == kLeave) {
    return false;
  }
  const Bytes frame = packet.frame();
  const i32 text = static_cast<i32>(aux.l3) + static_cast<i32>(aux.shift);
  const i32 end = text + static_cast<i32>(aux.text_length);
  const IsoPtr<u32> association = association_of(ctx, aux.association);
  if (association.size() != kAssociationWords) {
    return false;
  }
  const u32 first_word = frame.be32(end);
  const cipher::Sha1State icv = icv_of(frame, text - static_cast<i32>(cipher::kTextOffset), aux, association);
  if (aux.action == kProcessExtended) {
    frame.set_be32(end, first_word);
  }
  const u32 difference =
      (icv.words[0] ^ first_word) | (icv.words[1] ^ frame.be32(end + 4)) | (icv.words[2] ^ frame.be32(end + 8));
  return difference == 0;
}

inline void decrypt_text(Context const& ctx, PacketView const& packet) {
  const Aux aux = packet.aux<Aux>();
  if (aux.action == kLeave) {
    return;
  }
  const Bytes frame = packet.frame();
  const i32 text = static_cast<i32>(aux.l3) + static_cast<i32>(aux.shift);
  crypt_text(ctx, frame, text, aux.text_length, aux.text_length, association_of(ctx, aux.association),
             frame.be32(text - 8), frame.be32(text - 4), [](u32, u32(&)[cipher::kAesBlockWords]) {});
}

inline void finish_decrypt(PacketView const& packet, bool good) {
  const Aux aux = packet.aux<Aux>();
  u32 offset = packet.get<packet::kMetaOffset>();
  u32 length = packet.get<packet::kMetaLength>();
  u32 status = kDone;
  if (aux.action != kLeave) {
    u32 inner_length = 0;
    status = good ? open_tunnel(packet.frame(), aux, inner_length) : static_cast<u32>(kBadIcv);
    if (status == kDone) {
      offset += aux.shift;
      length = aux.l3 + inner_length;
    }
  }
  packet.set<packet::kMetaOffset>(static_cast<u16>(offset));
  packet.set<packet::kMetaLength>(static_cast<u16>(length));
  packet.set_result(PacketResult{status});
}

}  // namespace catena::ipsec

CATENA_KERNEL(ipsec_encrypt) {
  using namespace catena;
  using namespace catena::ipsec;
  load_table(ctx);
  const auto packet = ctx.packet();
  if (packet.valid()) {
    encrypt_text(ctx, packet);
  }
  catena::kernel::barrier_all();
  const catena::u32 mine = catena::kernel::local_id();
  if (mine < ctx.group_packets()) {
    const auto own = ctx.for_group_packet(mine);
    const auto whole = own.packet();
    if (whole.valid()) {
      finish_encrypt(own, whole, kept_words(own, mine));
    }
  }
}

CATENA_KERNEL(ipsec_decrypt) {
  using namespace catena;
  using namespace catena::ipsec;
  load_table(ctx);
  const auto packet = ctx.packet();
  const catena::u32 mine = catena::kernel::local_id();
  const auto own = ctx.for_group_packet(mine);
  const auto whole = own.packet();
  const bool has_own = mine < ctx.group_packets() && whole.valid();
  const bool good = has_own && has_good_icv(own, whole);
  catena::kernel::barrier_all();  // the ICV covers the ciphertext, which is overwritten from here on
  if (packet.valid()) {
    decrypt_text(ctx, packet);
  }
  catena::kernel::barrier_all();
  if (has_own) {
    finish_decrypt(whole, good);
  }
}
