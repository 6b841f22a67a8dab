// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/icmp_error.hpp>

#include <catena/packet/icmp.hpp>
#include <catena/packet/rewrite.hpp>

namespace catena::packet {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;
constexpr std::uint32_t kMinQuotedL4Bytes = 8;  // RFC 792
constexpr std::uint16_t kFragmentOffsetMask = 0x1FFF;

/// The bytes of the ICMP message, header included.
std::uint32_t message_bytes(Packet const& packet) { return kIcmpBytes + packet.layers().payload_length; }

void set_flow(Quote& quote) {
  quote.flow = flow_without_ports(quote.ip);
  const bool is_icmp = quote.flow.protocol == kProtocolIcmp;
  const std::uint16_t first = load_be16(quote.l4 + (is_icmp ? kIcmpIdentifierAt : 0));
  quote.is_echo_request = is_icmp && quote.l4[0] == kEchoRequest;
  quote.flow.source_port = first;
  quote.flow.destination_port = is_icmp ? first : load_be16(quote.l4 + 2);
}

/// Writes the ports or the identifier of the quote and corrects its transport checksum if the quote reaches that far.
/// `writer` has written the addresses.
void rewrite_transport(Quote const& quote, FlowKey const& flow, FieldWriter writer) {
  if (flow.protocol == kProtocolIcmp) {
    const bool source_differs = flow.source_port != quote.flow.source_port;
    FieldWriter icmp;  // no pseudo header
    icmp.put16(quote.l4 + kIcmpIdentifierAt, source_differs ? flow.source_port : flow.destination_port);
    icmp.correct(quote.l4 + kIcmpChecksumAt);
    return;
  }
  writer.put16(quote.l4, flow.source_port);
  writer.put16(quote.l4 + 2, flow.destination_port);
  if (flow.protocol == kProtocolUdp) {
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
  if (!has_right_icmp_checksum(packet) || message < kIcmpBytes + kIpv4MinBytes + kMinQuotedL4Bytes) {
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
  const std::uint8_t protocol = quote.ip[9];
  quote.l4 = quote.ip + header_bytes;
  quote.l4_bytes = quoted_bytes - header_bytes;
  const bool is_echo = protocol == kProtocolIcmp && (quote.l4[0] == kEchoRequest || quote.l4[0] == kEchoReply);
  if (!is_echo && protocol != kProtocolTcp && protocol != kProtocolUdp) {
    return QuoteProblem::kOther;
  }
  set_flow(quote);
  return quote;
}

void rewrite_error(Packet const& packet, Quote const& quote, QuoteEnds const& ends) {
  rewrite_transport(quote, ends.flow, write_addresses(quote.ip, ends.flow.source.v4(), ends.flow.destination.v4()));
  std::uint8_t* checksum = packet.l4() + kIcmpChecksumAt;
  store_be16(checksum, 0);
  store_be16(checksum, checksum_finish(checksum_add(packet.l4(), message_bytes(packet))));
  write_addresses(packet.l3(), ends.outer_source.v4(), ends.outer_destination.v4());
}

}  // namespace catena::packet
