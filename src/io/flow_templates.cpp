// SPDX-License-Identifier: Apache-2.0
#include "io/flow_templates.hpp"

#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace catena::io {
namespace {

constexpr std::uint32_t kL3 = packet::kEthernetBytes;
constexpr std::uint32_t kL4 = kL3 + packet::kIpv4MinBytes;
/// Payloads start at any even byte below this, so that flows differ.
constexpr std::uint32_t kTextStarts = 1U << 16;
/// Locally administered addresses.
constexpr std::uint8_t kMacAddresses[] = {0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1};
constexpr std::uint16_t kServices[] = {80, 443, 53, 22, 25, 8080, 3306, 5060};

std::uint16_t low_16(std::uint64_t value) { return static_cast<std::uint16_t>(value); }
std::uint32_t low_32(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

/// Words of 2 to 9 small letters.
std::vector<std::uint8_t> make_text(std::size_t bytes, std::mt19937_64& random) {
  std::vector<std::uint8_t> text(bytes);
  std::uint64_t word_left = 0;
  for (std::uint8_t& letter : text) {
    const std::uint64_t number = random();
    if (word_left == 0) {
      letter = ' ';
      word_left = 2 + (number >> 32) % 8;
    } else {
      letter = static_cast<std::uint8_t>('a' + (number >> 32) % 26);
      --word_left;
    }
  }
  return text;
}

}  // namespace

FlowTemplates::FlowTemplates(std::uint32_t flows, std::vector<std::uint32_t> sizes, std::mt19937_64& random)
    : sizes_(std::move(sizes)),
      text_(make_text(kTextStarts + *std::max_element(sizes_.begin(), sizes_.end()), random)) {
  templates_.reserve(std::size_t{flows} * sizes_.size());
  // an odd factor maps the 2^24 numbers one to one, so no two flows have the same source
  const std::uint32_t factor = low_32(random()) | 1U;
  const std::uint32_t shift = low_32(random());
  for (std::uint32_t number = 0; number < flows; ++number) {
    const std::uint64_t a = random();
    const std::uint64_t b = random();
    const Flow flow{
        .key = packet::FlowKey::of_v4(
            0x0A000000U | ((number * factor + shift) & 0x00FFFFFFU),
            (a & 1U) != 0 ? 0xAC100000U | (low_32(a >> 1) & 0x000FFFFFU) : 0xC0A80000U | (low_32(a >> 1) & 0x0000FFFFU),
            low_16(1024 + (a >> 32) % (65536 - 1024)), kServices[b % std::size(kServices)],
            number % 2 == 1 ? packet::kProtocolUdp : packet::kProtocolTcp),
        .sequence = low_32(b >> 32),
        .text_at = low_16((b >> 8) & (kTextStarts - 2)),
    };
    for (const std::uint32_t bytes : sizes_) {
      templates_.push_back(make_template(flow, bytes));
    }
  }
}

FlowTemplates::Template FlowTemplates::make_template(Flow const& flow, std::uint32_t frame_bytes) const {
  Template result{};
  std::uint8_t* head = result.head.data();
  std::uint8_t* ipv4 = head + kL3;
  std::uint8_t* l4 = head + kL4;
  std::memcpy(head, kMacAddresses, sizeof kMacAddresses);
  packet::store_be16(head + 12, 0x0800);
  ipv4[0] = 0x45;
  packet::store_be16(ipv4 + 2, low_16(frame_bytes - kL3));
  ipv4[6] = 0x40;  // don't fragment
  ipv4[8] = 64;    // time to live
  ipv4[9] = flow.key.protocol;
  packet::store_be32(ipv4 + 12, flow.key.source.v4());
  packet::store_be32(ipv4 + 16, flow.key.destination.v4());
  result.ipv4_sum = low_32(packet::checksum_add(ipv4, packet::kIpv4MinBytes));

  const std::uint32_t l4_bytes = frame_bytes - kL4;
  packet::store_be16(l4, flow.key.source_port);
  packet::store_be16(l4 + 2, flow.key.destination_port);
  const bool is_udp = flow.key.protocol == packet::kProtocolUdp;
  if (is_udp) {
    packet::store_be16(l4 + 4, low_16(l4_bytes));
  } else {
    packet::store_be32(l4 + 4, flow.sequence);
    l4[12] = 0x50;  // 5 words of header
    l4[13] = 0x10;  // ACK
    packet::store_be16(l4 + 14, 0xFFFF);
  }
  result.header_bytes = low_16(kL4 + (is_udp ? packet::kUdpBytes : packet::kTcpMinBytes));
  result.text_at = flow.text_at;

  // pseudo header, header and payload (RFC 768, RFC 9293); every part but the payload has an even length
  std::uint64_t sum = packet::checksum_add(ipv4 + 12, 8) + ipv4[9] + l4_bytes;
  sum = packet::checksum_add(l4, result.header_bytes - kL4, sum);
  sum = packet::checksum_add(text_.data() + flow.text_at, frame_bytes - result.header_bytes, sum);
  const std::uint16_t checksum = packet::checksum_finish(sum);
  packet::store_be16(l4 + (is_udp ? 6 : 16), is_udp && checksum == 0 ? 0xFFFF : checksum);
  return result;
}

std::uint32_t FlowTemplates::write(std::uint32_t flow, std::uint32_t size, std::uint16_t identification,
                                   std::uint8_t* frame) const {
  Template const& from = templates_[flow * sizes_.size() + size];
  std::memcpy(frame, from.head.data(), kHeadBytes);
  packet::store_be16(frame + kL3 + 4, identification);
  packet::store_be16(frame + kL3 + 10, packet::checksum_finish(std::uint64_t{from.ipv4_sum} + identification));
  std::memcpy(frame + from.header_bytes, text_.data() + from.text_at, sizes_[size] - from.header_bytes);
  return sizes_[size];
}

}  // namespace catena::io
