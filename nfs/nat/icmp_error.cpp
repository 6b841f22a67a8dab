// SPDX-License-Identifier: Apache-2.0
#include "icmp_error.hpp"

#include <optional>

#include "rewrite.hpp"

namespace catena::nat {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;
constexpr std::uint32_t kMinQuotedL4Bytes = 8;  // RFC 792
constexpr std::uint16_t kFragmentOffsetMask = 0x1FFF;

std::optional<Protocol> protocol_of(std::uint8_t number) {
  switch (number) {
    case packet::kProtocolTcp:
      return Protocol::kTcp;
    case packet::kProtocolUdp:
      return Protocol::kUdp;
    case packet::kProtocolIcmp:
      return Protocol::kIcmp;
    default:
      return std::nullopt;
  }
}

/// The bytes of the ICMP message, header included.
std::uint32_t message_bytes(packet::Packet const& packet) {
  return packet.layers().l3_length - static_cast<std::uint32_t>(packet.layers().l4 - packet.layers().l3);
}

void set_ports(Quote& quote, Protocol protocol) {
  const bool is_icmp = protocol == Protocol::kIcmp;
  const std::uint16_t first = packet::load_be16(quote.l4 + (is_icmp ? kIcmpIdentifierAt : 0));
  const std::uint16_t second = is_icmp ? first : packet::load_be16(quote.l4 + 2);
  quote.is_echo_request = is_icmp && quote.l4[0] == kEchoRequest;
  quote.source = {packet::load_be32(quote.ip + kIpSourceAt), first, protocol};
  quote.destination = {packet::load_be32(quote.ip + kIpDestinationAt), second, protocol};
}

/// Writes the ports or the identifier of the quote and corrects its transport checksum if the quote reaches that far.
/// `writer` has written the addresses.
void rewrite_transport(Quote const& quote, QuoteEnds const& ends, FieldWriter writer) {
  if (quote.source.protocol == Protocol::kIcmp) {
    const bool source_differs = ends.source.port != quote.source.port;
    FieldWriter icmp;  // no pseudo header
    icmp.put16(quote.l4 + kIcmpIdentifierAt, source_differs ? ends.source.port : ends.destination.port);
    icmp.correct(quote.l4 + kIcmpChecksumAt);
    return;
  }
  writer.put16(quote.l4, ends.source.port);
  writer.put16(quote.l4 + 2, ends.destination.port);
  if (quote.source.protocol == Protocol::kUdp) {
    writer.correct_udp(quote.l4 + kUdpChecksumAt);
  } else if (quote.l4_bytes >= kTcpChecksumAt + 2) {
    writer.correct(quote.l4 + kTcpChecksumAt);
  }
}

}  // namespace

bool is_icmp_error(std::uint8_t type) { return type == 3 || type == 4 || type == 11 || type == 12; }

std::variant<Quote, QuoteProblem> read_quote(packet::Packet const& packet) {
  if (packet.is(packet::kFragment)) {
    return QuoteProblem::kFragment;
  }
  const std::uint32_t message = message_bytes(packet);
  if (packet::checksum_finish(packet::checksum_add(packet.l4(), message)) != 0 ||
      message < packet::kIcmpBytes + packet::kIpv4MinBytes + kMinQuotedL4Bytes) {
    return QuoteProblem::kMalformed;
  }
  Quote quote{};
  quote.ip = packet.l4() + packet::kIcmpBytes;
  const std::uint32_t header_bytes = (quote.ip[0] & 0x0FU) * 4U;
  const std::uint32_t quoted_bytes = message - packet::kIcmpBytes;
  if (quote.ip[0] >> 4 != 4 || header_bytes < packet::kIpv4MinBytes ||
      quoted_bytes < header_bytes + kMinQuotedL4Bytes ||
      packet::checksum_finish(packet::checksum_add(quote.ip, header_bytes)) != 0) {
    return QuoteProblem::kMalformed;
  }
  if ((packet::load_be16(quote.ip + 6) & kFragmentOffsetMask) != 0) {
    return QuoteProblem::kFragment;
  }
  const std::optional<Protocol> protocol = protocol_of(quote.ip[9]);
  quote.l4 = quote.ip + header_bytes;
  quote.l4_bytes = quoted_bytes - header_bytes;
  if (!protocol || (*protocol == Protocol::kIcmp && quote.l4[0] != kEchoRequest && quote.l4[0] != kEchoReply)) {
    return QuoteProblem::kOther;
  }
  set_ports(quote, *protocol);
  return quote;
}

void rewrite_error(packet::Packet const& packet, Quote const& quote, QuoteEnds const& ends) {
  rewrite_transport(quote, ends, write_addresses(quote.ip, ends.source.address, ends.destination.address));
  std::uint8_t* checksum = packet.l4() + kIcmpChecksumAt;
  packet::store_be16(checksum, 0);
  packet::store_be16(checksum, packet::checksum_finish(packet::checksum_add(packet.l4(), message_bytes(packet))));
  write_addresses(packet.l3(), ends.outer_source, ends.outer_destination);
}

}  // namespace catena::nat
