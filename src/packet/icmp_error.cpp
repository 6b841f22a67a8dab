// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/icmp_error.hpp>

#include <catena/packet/rewrite.hpp>

namespace catena::packet {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;
constexpr std::uint32_t kMinQuotedL4Bytes = 8;  // RFC 792
constexpr std::uint16_t kFragmentOffsetMask = 0x1FFF;

/// The bytes of the ICMP message, header included.
std::uint32_t message_bytes(Packet const& packet) { return kIcmpBytes + packet.layers().payload_length; }

void set_ends(Quote& quote) {
  const bool is_icmp = quote.protocol == kProtocolIcmp;
  const std::uint16_t first = load_be16(quote.l4 + (is_icmp ? kIcmpIdentifierAt : 0));
  const std::uint16_t second = is_icmp ? first : load_be16(quote.l4 + 2);
  quote.is_echo_request = is_icmp && quote.l4[0] == kEchoRequest;
  quote.source = {load_be32(quote.ip + kIpSourceAt), first};
  quote.destination = {load_be32(quote.ip + kIpDestinationAt), second};
}

/// Writes the ports or the identifier of the quote and corrects its transport checksum if the quote reaches that far.
/// `writer` has written the addresses.
void rewrite_transport(Quote const& quote, QuoteEnds const& ends, FieldWriter writer) {
  if (quote.protocol == kProtocolIcmp) {
    const bool source_differs = ends.source.port != quote.source.port;
    FieldWriter icmp;  // no pseudo header
    icmp.put16(quote.l4 + kIcmpIdentifierAt, source_differs ? ends.source.port : ends.destination.port);
    icmp.correct(quote.l4 + kIcmpChecksumAt);
    return;
  }
  writer.put16(quote.l4, ends.source.port);
  writer.put16(quote.l4 + 2, ends.destination.port);
  if (quote.protocol == kProtocolUdp) {
    writer.correct_udp(quote.l4 + kUdpChecksumAt);
  } else if (quote.l4_bytes >= kTcpChecksumAt + 2) {
    writer.correct(quote.l4 + kTcpChecksumAt);
  }
}

}  // namespace

bool is_icmp_error(std::uint8_t type) { return type == 3 || type == 4 || type == 11 || type == 12; }

std::variant<Quote, QuoteProblem> read_quote(Packet const& packet) {
  if (packet.is(kFragment)) {
    return QuoteProblem::kFragment;
  }
  const std::uint32_t message = message_bytes(packet);
  if (checksum_finish(checksum_add(packet.l4(), message)) != 0 ||
      message < kIcmpBytes + kIpv4MinBytes + kMinQuotedL4Bytes) {
    return QuoteProblem::kMalformed;
  }
  Quote quote{};
  quote.ip = packet.l4() + kIcmpBytes;
  const std::uint32_t header_bytes = (quote.ip[0] & 0x0FU) * 4U;
  const std::uint32_t quoted_bytes = message - kIcmpBytes;
  if (quote.ip[0] >> 4 != 4 || header_bytes < kIpv4MinBytes || quoted_bytes < header_bytes + kMinQuotedL4Bytes ||
      checksum_finish(checksum_add(quote.ip, header_bytes)) != 0) {
    return QuoteProblem::kMalformed;
  }
  if ((load_be16(quote.ip + 6) & kFragmentOffsetMask) != 0) {
    return QuoteProblem::kFragment;
  }
  quote.protocol = quote.ip[9];
  quote.l4 = quote.ip + header_bytes;
  quote.l4_bytes = quoted_bytes - header_bytes;
  const bool is_echo = quote.protocol == kProtocolIcmp && (quote.l4[0] == kEchoRequest || quote.l4[0] == kEchoReply);
  if (!is_echo && quote.protocol != kProtocolTcp && quote.protocol != kProtocolUdp) {
    return QuoteProblem::kOther;
  }
  set_ends(quote);
  return quote;
}

void rewrite_error(Packet const& packet, Quote const& quote, QuoteEnds const& ends) {
  rewrite_transport(quote, ends, write_addresses(quote.ip, ends.source.address, ends.destination.address));
  std::uint8_t* checksum = packet.l4() + kIcmpChecksumAt;
  store_be16(checksum, 0);
  store_be16(checksum, checksum_finish(checksum_add(packet.l4(), message_bytes(packet))));
  write_addresses(packet.l3(), ends.outer_source, ends.outer_destination);
}

}  // namespace catena::packet
