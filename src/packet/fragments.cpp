// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/fragments.hpp>

#include <algorithm>
#include <cstring>

namespace catena::packet {
namespace {

constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreFragments = 0x2000;
constexpr std::uint16_t kOffsetMask = 0x1FFF;
constexpr std::uint32_t kOctetsPerOffset = 8;

constexpr std::uint8_t kEndOfOptions = 0;
constexpr std::uint8_t kNoOperation = 1;
constexpr std::uint8_t kCopied = 0x80;

/// Copies those options that RFC 791, section 3.1 wants in every fragment, padded to whole words. Returns their bytes.
/// An option whose length lies ends the list.
std::uint32_t copy_options(const std::uint8_t* options, std::uint32_t bytes, std::uint8_t* to) {
  std::uint32_t used = 0;
  for (std::uint32_t at = 0; at < bytes && options[at] != kEndOfOptions;) {
    if (options[at] == kNoOperation) {
      ++at;
      continue;
    }
    const std::uint32_t length = at + 1 < bytes ? options[at + 1] : 0U;
    if (length < 2 || length > bytes - at) {
      break;
    }
    if ((options[at] & kCopied) != 0) {
      std::memcpy(to + used, options + at, length);
      used += length;
    }
    at += length;
  }
  while (used % 4 != 0) {
    to[used++] = kEndOfOptions;
  }
  return used;
}

}  // namespace

std::uint32_t leaves_in(Packet const& packet) {
  if (packet.mtu() == 0 || !packet.is(kIpv4) || packet.l3_length() <= packet.mtu()) {
    return 1;
  }
  return (load_be16(packet.l3() + 6) & kDontFragment) != 0 ? 0 : Fragments(packet).count();
}

Fragments::Fragments(Packet const& packet)
    : frame_(packet.frame()),
      l3_(packet.layers().l3),
      mtu_(std::max(packet.mtu(), kMinMtu)),
      header_bytes_((packet.l3()[0] & 0x0FU) * 4U),
      payload_bytes_(packet.l3_length() - header_bytes_) {
  later_header_bytes_ =
      kIpv4MinBytes + copy_options(frame_ + l3_ + kIpv4MinBytes, header_bytes_ - kIpv4MinBytes, later_options_);
  first_payload_ = (mtu_ - header_bytes_) / kOctetsPerOffset * kOctetsPerOffset;
  later_payload_ = (mtu_ - later_header_bytes_) / kOctetsPerOffset * kOctetsPerOffset;
  // the last one may take what is no multiple of 8
  const std::uint32_t last_payload = mtu_ - later_header_bytes_;
  const std::uint32_t rest = payload_bytes_ - std::min(payload_bytes_, first_payload_);
  count_ = 2;
  if (rest > last_payload) {
    count_ += (rest - last_payload + later_payload_ - 1) / later_payload_;
  }
}

std::uint32_t Fragments::write(std::uint32_t number, std::uint8_t* to) const {
  const bool first = number == 0;
  const bool last = number + 1 == count_;
  const std::uint32_t begin = first ? 0 : first_payload_ + (number - 1) * later_payload_;
  const std::uint32_t octets = last ? payload_bytes_ - begin : first ? first_payload_ : later_payload_;
  const std::uint32_t header_bytes = first ? header_bytes_ : later_header_bytes_;
  const std::uint16_t original = load_be16(frame_ + l3_ + 6);
  // the data first: where `to` is the frame itself, the header is about to change
  std::memmove(to + l3_ + header_bytes, frame_ + l3_ + header_bytes_ + begin, octets);
  std::memmove(to, frame_, l3_ + kIpv4MinBytes);
  std::uint8_t* header = to + l3_;
  if (first) {
    std::memmove(header + kIpv4MinBytes, frame_ + l3_ + kIpv4MinBytes, header_bytes - kIpv4MinBytes);
  } else {
    std::memcpy(header + kIpv4MinBytes, later_options_, header_bytes - kIpv4MinBytes);
  }
  header[0] = static_cast<std::uint8_t>(0x40U | header_bytes / 4);
  store_be16(header + 2, static_cast<std::uint16_t>(header_bytes + octets));
  const std::uint32_t offset = (original & kOffsetMask) + begin / kOctetsPerOffset;
  const std::uint32_t more = last ? original & kMoreFragments : kMoreFragments;
  store_be16(header + 6, static_cast<std::uint16_t>((offset & kOffsetMask) | more));
  store_be16(header + 10, 0);
  store_be16(header + 10, checksum_finish(checksum_add(header, header_bytes)));
  return l3_ + header_bytes + octets;
}

}  // namespace catena::packet
