// SPDX-License-Identifier: Apache-2.0
#include "plan/testing/chains.hpp"

namespace catena::plan::testing {
namespace {

using packet::fields;
using packet::FieldSet;

constexpr FieldSet kFiveTuple =
    fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Protocol, packet::kL4Sport, packet::kL4Dport);
constexpr FieldSet kRewritten = fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum, packet::kL4Sport,
                                       packet::kL4Dport, packet::kL4Checksum);
constexpr FieldSet kLayers = fields(packet::kMetaLayers);
/// What parse() and a selector inspect.
constexpr FieldSet kParsed = kFiveTuple | kLayers |
                             fields(packet::kEthType, packet::kIpv4Version, packet::kIpv4Length, packet::kIpv4Fragment,
                                    packet::kTcpFlags, packet::kUdpLength, packet::kMetaOffset, packet::kMetaLength);
constexpr FieldSet kFrame = packet::kFrameFields | fields(packet::kMetaOffset, packet::kMetaLength);

PlacedNf ipsec(std::string name, Processor on) {
  PlacedNf nf{.name = std::move(name), .on = on, .aux_bytes = 20, .result_bytes = 4, .headroom = 48, .tailroom = 32};
  nf.hints.cr = nf.hints.cw = nf.hints.gr = nf.hints.gw = kFrame;
  nf.hints.complete_writes = kLayers;
  return nf;
}

}  // namespace

PlacedNf firewall(Processor on) {
  PlacedNf nf{.name = "firewall", .on = on, .result_bytes = 4};
  nf.hints.cr = nf.hints.gr = kFiveTuple | kLayers;
  return nf;
}

PlacedNf nids(Processor on) {
  PlacedNf nf{.name = "nids", .on = on, .result_bytes = 32};
  nf.hints.cr = nf.hints.gr = fields(packet::kPayload);
  nf.hints.complete_reads = kFiveTuple | kLayers;
  nf.hints.complete_writes = fields(packet::kMetaVerdict);
  return nf;
}

PlacedNf encrypt(Processor on) {
  PlacedNf nf = ipsec("encrypt", on);
  nf.hints.prepare_reads = kFiveTuple | kLayers | fields(packet::kIpv4Length);
  return nf;
}

PlacedNf decrypt(Processor on) {
  PlacedNf nf = ipsec("decrypt", on);
  // the ESP header is the first 8 bytes of the payload, or of what UDP port 4500 carries
  nf.hints.prepare_reads = kFiveTuple | kLayers | fields(packet::kPayload);
  nf.hints.complete_reads = kParsed;
  return nf;
}

PlacedNf router(Processor on) {
  PlacedNf nf{.name = "router", .on = on, .result_bytes = 4};
  constexpr FieldSet kTtl = fields(packet::kIpv4Ttl, packet::kIpv4Checksum);
  nf.hints.cr = fields(packet::kIpv4Dst) | kTtl;
  nf.hints.cw = nf.hints.gw = fields(packet::kMetaPort) | kTtl;
  nf.hints.gr = nf.hints.cr;
  return nf;
}

PlacedNf nat(Processor on) {
  PlacedNf nf{.name = "nat", .on = on, .aux_bytes = 16};
  constexpr FieldSet kHeaders = kRewritten | fields(packet::kIcmpHeader);
  nf.hints.cr = nf.hints.cw = nf.hints.gr = nf.hints.gw = kHeaders;
  nf.hints.prepare_reads = kHeaders | kLayers |
                           fields(packet::kIpv4Version, packet::kIpv4Id, packet::kIpv4Fragment, packet::kIpv4Protocol,
                                  packet::kTcpFlags, packet::kPayload);
  nf.hints.prepare_writes =
      fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum, packet::kL4Checksum, packet::kPayload);
  nf.hints.prepare_writes_few = fields(packet::kPayload);  // of ICMP errors
  return nf;
}

PlacedNf lb(Processor on) {
  PlacedNf nf{.name = "lb", .on = on, .aux_bytes = 12};
  nf.hints.cr = nf.hints.cw = nf.hints.gr = nf.hints.gw = kRewritten;
  nf.hints.prepare_reads = kFiveTuple | fields(packet::kTcpFlags);
  return nf;
}

PlacedNf monitor(Processor on) {
  PlacedNf nf{.name = "monitor", .on = on, .result_bytes = 8};
  nf.hints.gr = kFiveTuple | fields(packet::kIpv4Length, packet::kTcpFlags, packet::kIcmpHeader);
  nf.hints.complete_reads = nf.hints.gr | kLayers | fields(packet::kIpv4Tos);
  return nf;
}

std::vector<PlacedNf> chain_c(int number) {
  constexpr Processor kC = Processor::kCpu;
  constexpr Processor kG = Processor::kGpu;
  switch (number) {
    case 1:
      return {firewall(kC), decrypt(kG), nids(kG)};
    case 2:
      return {nids(kG), nat(kC), encrypt(kG)};
    case 3:
      return {decrypt(kG), lb(kC), nids(kG)};
    case 4:
      return {firewall(kG), decrypt(kG), nids(kG), router(kC)};
    case 5:
      return {firewall(kG), monitor(kC), nat(kG), encrypt(kG), nids(kG)};
    default:
      return {};
  }
}

}  // namespace catena::plan::testing
