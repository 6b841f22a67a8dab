// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/testing/frames.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace catena::packet::testing {
namespace {

using packet::load_be16;
using packet::store_be16;
using packet::store_be32;

constexpr std::array<std::uint8_t, 14> kEthernet{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00};
constexpr std::uint16_t kMoreFragments = 0x2000;
constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kUnreachable = 3;

std::uint16_t low_16(std::size_t value) { return static_cast<std::uint16_t>(value); }

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::size_t header_bytes(Frame const& frame, std::size_t l3) { return (frame[l3] & 0x0FU) * 4U; }

void set_datagram_bytes(Frame& frame) { store_be16(&frame[kL3 + 2], low_16(frame.size() - kL3)); }

std::uint16_t header_checksum(Frame const& frame, std::size_t l3) {
  return internet_checksum(std::span(frame).subspan(l3, header_bytes(frame, l3)));
}

/// The sum over the pseudo header (RFC 793, RFC 768) before `bytes` bytes of TCP or UDP.
std::uint32_t pseudo_header(Frame const& frame, std::size_t l3, std::size_t bytes) {
  std::uint32_t sum = frame[l3 + 9] + static_cast<std::uint32_t>(bytes);
  for (std::size_t at = l3 + 12; at < l3 + 20; at += 2) {
    sum += load_be16(&frame[at]);
  }
  return sum;
}

std::uint16_t transport_checksum(Frame const& frame, std::size_t l3, bool has_pseudo_header) {
  const std::size_t bytes = load_be16(&frame[l3 + 2]) - header_bytes(frame, l3);
  return internet_checksum(std::span(frame).subspan(l3 + header_bytes(frame, l3), bytes),
                           has_pseudo_header ? pseudo_header(frame, l3, bytes) : 0);
}

constexpr std::size_t kTcpChecksum = 16;
constexpr std::size_t kUdpChecksum = 6;
constexpr std::size_t kIcmpChecksum = 2;

/// `field`: the offset of the checksum in its header.
void set_transport_checksum(Frame& frame, std::size_t l3, std::size_t field, bool has_pseudo_header) {
  std::uint8_t* const at = &frame[l3 + header_bytes(frame, l3) + field];
  store_be16(at, 0);
  const std::uint16_t checksum = transport_checksum(frame, l3, has_pseudo_header);
  store_be16(at, checksum == 0 && field == kUdpChecksum ? std::uint16_t{0xFFFF} : checksum);  // RFC 768
}

bool has_no_checksum(Frame const& frame) {
  return frame[kL3 + 9] == packet::kProtocolUdp && load_be16(&frame[kL3 + header_bytes(frame, kL3) + 6]) == 0;
}

bool is_icmp_error(std::uint8_t type) { return type == kUnreachable || type == 4 || type == 11 || type == 12; }

}  // namespace

Frame make_datagram(std::uint8_t protocol, std::uint32_t source, std::uint32_t destination,
                    std::span<const std::uint8_t> payload, std::uint8_t ttl) {
  Frame frame(kL4 + payload.size(), 0);
  std::copy(kEthernet.begin(), kEthernet.end(), frame.begin());
  frame[kL3] = 0x45;
  set_datagram_bytes(frame);
  frame[kL3 + 8] = ttl;
  frame[kL3 + 9] = protocol;
  store_be32(&frame[kL3 + 12], source);
  store_be32(&frame[kL3 + 16], destination);
  std::copy(payload.begin(), payload.end(), frame.begin() + kL4);
  return with_header_checksum(std::move(frame));
}

Frame make_frame(std::uint8_t protocol, std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                 std::uint16_t destination_port, std::string_view payload, std::uint8_t ttl) {
  const bool is_tcp = protocol == packet::kProtocolTcp;
  Frame message(is_tcp ? packet::kTcpMinBytes : packet::kUdpBytes, 0);
  message.insert(message.end(), payload.begin(), payload.end());
  store_be16(message.data(), source_port);
  store_be16(&message[2], destination_port);
  if (is_tcp) {
    message[12] = 0x50;
    message[13] = kPsh | kAck;
    store_be16(&message[14], 0xFFFF);
  } else {
    store_be16(&message[4], low_16(message.size()));
  }
  Frame frame = make_datagram(protocol, source, destination, message, ttl);
  set_transport_checksum(frame, kL3, is_tcp ? kTcpChecksum : kUdpChecksum, true);
  return frame;
}

Frame make_segment(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                   std::uint16_t destination_port, std::uint8_t flags, std::string_view payload) {
  Frame frame = make_frame(packet::kProtocolTcp, source, destination, source_port, destination_port, payload);
  frame[kL4 + 13] = flags;
  return with_checksums(std::move(frame));
}

Frame make_icmp(std::uint8_t type, std::uint8_t code, std::uint32_t source, std::uint32_t destination,
                std::uint32_t rest, std::span<const std::uint8_t> body) {
  Frame message{type, code, 0, 0, 0, 0, 0, 0};
  store_be32(&message[4], rest);
  message.insert(message.end(), body.begin(), body.end());
  return with_checksums(make_datagram(packet::kProtocolIcmp, source, destination, message));
}

Frame make_echo(std::uint32_t source, std::uint32_t destination, std::uint16_t identifier, std::uint16_t sequence,
                std::string_view payload, std::uint8_t type) {
  return make_icmp(type, 0, source, destination, std::uint32_t{identifier} << 16 | sequence, bytes_of(payload));
}

Frame make_error(std::uint8_t type, std::uint32_t from, Frame const& frame, std::size_t quoted) {
  return make_icmp(type, type == kUnreachable ? 3 : 0, from, source_of(frame), 0, quote_of(frame, quoted));
}

std::span<const std::uint8_t> quote_of(Frame const& frame, std::size_t quoted) {
  return std::span(frame).subspan(kL3, std::min(header_bytes(frame, kL3) + quoted, frame.size() - kL3));
}

Frame make_arp_request(std::uint32_t sender, std::uint32_t wanted) {
  Frame frame{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
  frame.resize(60);  // the least that Ethernet sends
  std::copy_n(frame.begin() + 6, 6, frame.begin() + 22);
  store_be32(&frame[28], sender);
  store_be32(&frame[38], wanted);
  return frame;
}

Frame with_vlan(Frame frame, unsigned tags) {
  for (unsigned i = 0; i < tags; ++i) {
    const std::uint8_t tag[] = {0x81, 0x00, 0x00, 0x07};
    frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
  }
  return frame;
}

Frame with_options(Frame frame, unsigned words) {
  frame.insert(frame.begin() + kL4, std::size_t{words} * 4, 1);
  frame[kL3] = static_cast<std::uint8_t>(0x45 + words);
  store_be16(&frame[kL3 + 2], low_16(load_be16(&frame[kL3 + 2]) + words * 4));
  return frame;
}

Frame with_fragment(Frame frame, std::uint16_t word) {
  store_be16(&frame[kL3 + 6], word);
  return frame;
}

Frame with_tos(Frame frame, std::uint8_t tos) {
  frame[kL3 + 1] = tos;
  return frame;
}

Frame ends_after(Frame frame, std::size_t bytes) {
  frame.resize(kL4 + bytes);
  set_datagram_bytes(frame);
  return frame;
}

Frame with_ends(Frame frame, std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                std::uint16_t destination_port) {
  const std::size_t l4 = kL3 + header_bytes(frame, kL3);
  const bool had_none = has_no_checksum(frame);
  store_be32(&frame[kL3 + 12], source);
  store_be32(&frame[kL3 + 16], destination);
  if (frame[kL3 + 9] == packet::kProtocolIcmp) {
    store_be16(&frame[l4 + 4], source_port);
  } else {
    store_be16(&frame[l4], source_port);
    store_be16(&frame[l4 + 2], destination_port);
  }
  frame = with_checksums(std::move(frame));
  if (had_none) {
    store_be16(&frame[l4 + 6], 0);
  }
  return frame;
}

Frame answer_to(Frame const& frame) {
  Frame answer = frame;
  if (frame[kL3 + 9] == packet::kProtocolIcmp) {
    answer[kL4] = kEchoReply;
    return with_ends(std::move(answer), destination_of(frame), load_be16(&frame[kL4 + 4]), source_of(frame), 0);
  }
  return with_ends(std::move(answer), destination_of(frame), destination_port_of(frame), source_of(frame),
                   source_port_of(frame));
}

Frame fragment_of(Frame const& frame, std::size_t begin, std::size_t end) {
  const std::span<const std::uint8_t> payload = std::span(frame).subspan(kL4);
  const std::size_t last = std::min(end, payload.size());
  const std::span<const std::uint8_t> part = payload.subspan(begin, last - begin);
  Frame fragment(frame.begin(), frame.begin() + kL4);
  fragment.insert(fragment.end(), part.begin(), part.end());
  set_datagram_bytes(fragment);
  const unsigned more = last < payload.size() ? kMoreFragments : 0U;
  return with_header_checksum(with_fragment(std::move(fragment), low_16(more | begin / 8)));
}

std::pair<Frame, Frame> in_two(Frame frame, std::uint16_t id, std::size_t first_bytes) {
  store_be16(&frame[kL3 + 4], id);
  return {fragment_of(frame, 0, first_bytes), fragment_of(frame, first_bytes, frame.size())};
}

std::uint16_t internet_checksum(std::span<const std::uint8_t> bytes, std::uint32_t start) {
  std::uint64_t sum = start;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? std::uint64_t{bytes[i]} << 8 : bytes[i];
  }
  while (sum > 0xFFFF) {
    sum = (sum & 0xFFFF) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

Frame with_header_checksum(Frame frame, std::size_t l3) {
  store_be16(&frame[l3 + 10], 0);
  store_be16(&frame[l3 + 10], header_checksum(frame, l3));
  return frame;
}

Frame with_checksums(Frame frame, std::size_t l3) {
  frame = with_header_checksum(std::move(frame), l3);
  const std::uint8_t protocol = frame[l3 + 9];
  const std::size_t field = protocol == packet::kProtocolTcp   ? kTcpChecksum
                            : protocol == packet::kProtocolUdp ? kUdpChecksum
                                                               : kIcmpChecksum;
  set_transport_checksum(frame, l3, field, protocol != packet::kProtocolIcmp);
  return frame;
}

bool has_right_checksums(Frame const& frame) {
  const bool is_icmp = frame[kL3 + 9] == packet::kProtocolIcmp;
  if (header_checksum(frame, kL3) != 0) {
    return false;
  }
  if (!has_no_checksum(frame) && transport_checksum(frame, kL3, !is_icmp) != 0) {
    return false;
  }
  const std::size_t l4 = kL3 + header_bytes(frame, kL3);
  return !(is_icmp && is_icmp_error(frame[l4])) || header_checksum(frame, l4 + 8) == 0;
}

}  // namespace catena::packet::testing
