// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/icmp.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::packet {
namespace {

constexpr std::uint32_t kMacBytes = 6;
/// Of an ICMP error, its IPv4 header included.
constexpr std::uint32_t kMaxErrorBytes = 576;
constexpr std::uint32_t kAddedBytes = kIpv4MinBytes + kIcmpBytes;
constexpr std::uint8_t kTtl = 64;
constexpr std::uint8_t kInternetworkControl = 0xC0;
constexpr std::uint8_t kTosBits = 0x1E;
constexpr std::uint16_t kDontFragmentFlag = 0x4000;
constexpr std::uint16_t kOffsetBits = 0x1FFF;

/// The query messages of RFC 1122, section 3.2.2.
bool is_icmp_query(std::uint8_t type) { return type == 0 || type == 8 || (type >= 13 && type <= 18); }

bool is_single_host(std::uint32_t address) {
  const std::uint32_t net = address >> 24;
  return net != 0 && net != 127 && net < 224;
}

}  // namespace

bool may_report(Packet const& packet) {
  if (!packet.is(kIpv4)) {
    return false;
  }
  const std::uint8_t* ip = packet.l3();
  if ((load_be16(ip + 6) & kOffsetBits) != 0 || ((packet.frame()[0] | packet.frame()[kMacBytes]) & 1U) != 0) {
    return false;
  }
  constexpr std::uint32_t kFirstMulticast = 0xE0000000;
  if (!is_single_host(load_be32(ip + 12)) || load_be32(ip + 16) >= kFirstMulticast) {
    return false;
  }
  // an ICMP message whose type cannot be read may be an error
  return ip[9] != kProtocolIcmp || (packet.is(kIcmp) && is_icmp_query(packet.l4()[0]));
}

bool has_right_icmp_checksum(Packet const& packet) {
  return checksum_finish(checksum_add(packet.l4(), kIcmpBytes + packet.layers().payload_length)) == 0;
}

void make_icmp_error(Packet const& packet, IcmpError const& error, std::uint32_t source) {
  const std::uint32_t l3 = packet.layers().l3;
  const std::uint32_t datagram = std::min(packet.l3_length(), packet.length() - l3);
  const std::uint32_t quoted = std::min(datagram, kMaxErrorBytes - kAddedBytes);
  const std::uint8_t* old_frame = packet.frame();
  const std::uint32_t to = load_be32(old_frame + l3 + 12);
  const auto tos = static_cast<std::uint8_t>((old_frame[l3 + 1] & kTosBits) | kInternetworkControl);
  std::array<std::uint8_t, 2 * kMacBytes + 16> l2;  // two addresses, two tags, EtherType
  std::copy_n(old_frame + kMacBytes, kMacBytes, l2.begin());
  std::copy_n(old_frame, kMacBytes, l2.begin() + kMacBytes);
  std::copy_n(old_frame + 2 * kMacBytes, l3 - 2 * kMacBytes, l2.begin() + 2 * kMacBytes);

  // the quote stays where it is, unless tunnels have used up the headroom
  std::uint8_t* slot = packet.frame() - packet.offset();
  std::uint32_t offset = packet.offset();
  if (offset >= kAddedBytes) {
    offset -= kAddedBytes;
  } else {
    offset = kSlotHeadroom;
    std::memmove(slot + offset + l3 + kAddedBytes, old_frame + l3, quoted);
  }
  packet.set_extent(offset, l3 + kAddedBytes + quoted);
  std::copy_n(l2.begin(), l3, slot + offset);

  std::uint8_t* ip = slot + offset + l3;
  std::memset(ip, 0, kAddedBytes);
  ip[0] = 0x45;
  ip[1] = tos;
  store_be16(ip + 2, static_cast<std::uint16_t>(kAddedBytes + quoted));
  store_be16(ip + 6, kDontFragmentFlag);  // so the identification says nothing (RFC 6864)
  ip[8] = kTtl;
  ip[9] = kProtocolIcmp;
  store_be32(ip + 12, source);
  store_be32(ip + 16, to);
  store_be16(ip + 10, checksum_finish(checksum_add(ip, kIpv4MinBytes)));
  std::uint8_t* icmp = ip + kIpv4MinBytes;
  icmp[0] = error.type;
  icmp[1] = error.code;
  store_be32(icmp + 4, error.rest);
  store_be16(icmp + 2, checksum_finish(checksum_add(icmp, kIcmpBytes + quoted)));
  packet.set_mtu(0);
  packet.reparse();
}

void make_echo_reply(Packet const& packet) {
  std::uint8_t* frame = packet.frame();
  std::swap_ranges(frame, frame + kMacBytes, frame + kMacBytes);
  std::uint8_t* ip = packet.l3();
  std::swap_ranges(ip + 12, ip + 16, ip + 16);
  const std::uint16_t ttl_before = load_be16(ip + 8);
  ip[8] = kTtl;
  store_be16(ip + 10, checksum_update(load_be16(ip + 10), ttl_before, load_be16(ip + 8)));
  std::uint8_t* icmp = packet.l4();
  const std::uint16_t type_before = load_be16(icmp);
  icmp[0] = 0;
  store_be16(icmp + 2, checksum_update(load_be16(icmp + 2), type_before, load_be16(icmp)));
}

bool ErrorBudget::take(std::uint64_t stamp_ns) {
  const std::uint64_t next_ns = next_stamp_ns_.load(std::memory_order_relaxed);
  if (stamp_ns < next_ns && next_ns - stamp_ns <= PacketClock::kSlackNs) {
    return false;
  }
  const std::scoped_lock lock(mutex_);
  return take_locked(stamp_ns);
}

bool ErrorBudget::take_locked(std::uint64_t stamp_ns) {
  const std::uint64_t before_ns = clock_.now_ns();
  const std::uint64_t elapsed = clock_.advance(stamp_ns) - before_ns;
  // before the product can overflow the bucket is full
  const std::uint64_t full = burst_ * kNsPerSecond;
  const bool fills = per_second_ != 0 && elapsed >= (full - tokens_ns_) / per_second_ + 1;
  tokens_ns_ = fills ? full : tokens_ns_ + elapsed * per_second_;
  const bool took = tokens_ns_ >= kNsPerSecond;
  tokens_ns_ -= took ? kNsPerSecond : 0;
  const bool is_empty = tokens_ns_ < kNsPerSecond && per_second_ != 0;
  const std::uint64_t lacks_ns = is_empty ? (kNsPerSecond - tokens_ns_ + per_second_ - 1) / per_second_ : 0;
  next_stamp_ns_.store(is_empty && clock_.is_in_order() ? clock_.stamp_after(lacks_ns) : 0, std::memory_order_relaxed);
  return took;
}

}  // namespace catena::packet
