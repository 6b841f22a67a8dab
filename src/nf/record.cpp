// SPDX-License-Identifier: Apache-2.0
#include "nf/record.hpp"

#include "packet/address_bytes.hpp"

#include <catena/core/text.hpp>
#include <catena/core/time.hpp>
#include <catena/packet/ether_type.hpp>

#include <array>
#include <ctime>
#include <limits>
#include <span>
#include <utility>

namespace catena::nf {
namespace {

/// The name that Suricata 7 has for an IP protocol, else its number with three digits.
std::string protocol_name(std::uint8_t protocol) {
  // the keywords of IANA's registry of protocol numbers, from 0 on
  constexpr std::array<std::string_view, 144> kNames{
      "HOPOPT",      "ICMP",       "IGMP",        "GGP",        "IP-in-IP",
      "ST",          "TCP",        "CBT",         "EGP",        "IGP",
      "BBN-RCC-MON", "NVP-II",     "PUP",         "ARGUS",      "EMCON",
      "XNET",        "CHAOS",      "UDP",         "MUX",        "DCN-MEAS",
      "HMP",         "PRM",        "XNS-IDP",     "TRUNK-1",    "TRUNK-2",
      "LEAF-1",      "LEAF-2",     "RDP",         "IRTP",       "ISO-TP4",
      "NETBLT",      "MFE-NSP",    "MERIT-INP",   "DCCP",       "3PC",
      "IDPR",        "XTP",        "DDP",         "IDPR-CMTP",  "TP++",
      "IL",          "IPv6",       "SDRP",        "IPv6-Route", "IPv6-Frag",
      "IDRP",        "RSVP",       "GRE",         "DSR",        "BNA",
      "ESP",         "AH",         "I-NLSP",      "SwIPe",      "NARP",
      "MOBILE",      "TLSP",       "SKIP",        "IPv6-ICMP",  "IPv6-NoNxt",
      "IPv6-Opts",   "Any",        "CFTP",        "Any",        "SAT-EXPAK",
      "KRYPTOLAN",   "RVD",        "IPPC",        "Any",        "SAT-MON",
      "VISA",        "IPCU",       "CPNX",        "CPHB",       "WSN",
      "PVP",         "BR-SAT-MON", "SUN-ND",      "WB-MON",     "WB-EXPAK",
      "ISO-IP",      "VMTP",       "SECURE-VMTP", "VINES",      "TTP",
      "NSFNET-IGP",  "DGP",        "TCF",         "EIGRP",      "OSPF",
      "Sprite-RPC",  "LARP",       "MTP",         "AX.25",      "OS",
      "MICP",        "SCC-SP",     "ETHERIP",     "ENCAP",      "Any",
      "GMTP",        "IFMP",       "PNNI",        "PIM",        "ARIS",
      "SCPS",        "QNX",        "A/N",         "IPComp",     "SNP",
      "Compaq-Peer", "IPX-in-IP",  "VRRP",        "PGM",        "Any",
      "L2TP",        "DDX",        "IATP",        "STP",        "SRP",
      "UTI",         "SMP",        "SM",          "PTP",        "IS-IS",
      "FIRE",        "CRTP",       "CRUDP",       "SSCOPMCE",   "IPLT",
      "SPS",         "PIPE",       "SCTP",        "FC",         "RSVP-E2E-IGNORE",
      "Mobility",    "UDPLite",    "MPLS-in-IP",  "manet",      "HIP",
      "Shim6",       "WESP",       "ROHC",        "Ethernet"};
  return protocol < kNames.size() ? std::string(kNames[protocol]) : fmt::format("{:03}", protocol);
}

/// "2013-05-02T20:20:36.633914+0000"
std::string eve_time(std::uint64_t time_ns) {
  constexpr std::size_t kToMicroseconds = 26;
  return concat(utc_of(time_ns).substr(0, kToMicroseconds), "+0000");
}

/// The member `ethertype`, if nothing else tells what the frame carries.
std::string ether_type_member(Arrival const& arrival) {
  if (arrival.ether_type == 0) {
    return {};
  }
  return arrival.ether_type <= packet::kMaxLlcLength ? R"(,"ethertype":"llc")"
                                                     : fmt::format(R"(,"ethertype":"{:#06x}")", arrival.ether_type);
}

/// Fills in what can be read of a frame in which parse() found no IPv4.
void read_other(packet::Packet const& packet, Arrival& arrival) {
  constexpr std::uint32_t kIpv6Bytes = 40;
  if (packet.length() < packet::kEthernetBytes) {
    return;
  }
  const auto [type, end] =
      packet::ether_type_of(packet.frame(), packet.length(), std::numeric_limits<std::uint32_t>::max());
  arrival.ether_type = type;
  const std::uint8_t* ip = packet.frame() + end;
  const std::uint32_t bytes = packet.length() - end;
  if (type == packet::kEtherTypeIpv4 && bytes >= packet::kIpv4MinBytes && ip[0] >> 4 == 4) {
    arrival.flow = packet::flow_without_ports(ip);
    arrival.has_addresses = true;
  } else if (type == packet::kEtherTypeIpv6 && bytes >= kIpv6Bytes && ip[0] >> 4 == 6) {
    const std::span<const std::uint8_t, kIpv6Bytes> header(ip, kIpv6Bytes);
    arrival.flow = {.source = packet::address_of(header.subspan<8, sizeof(packet::Address)>()),
                    .destination = packet::address_of(header.subspan<24, sizeof(packet::Address)>()),
                    .protocol = ip[6]};
    arrival.has_addresses = true;
  }
}

std::string format_arrival(Arrival const& arrival) {
  std::string text = concat(R"(,"ts":")", utc_of(arrival.time_ns), "\"", ether_type_member(arrival));
  if (arrival.has_addresses) {
    text += concat(R"(,"src":")", to_string(arrival.flow.source), R"(","dst":")", to_string(arrival.flow.destination),
                   R"(","proto":)", arrival.flow.protocol);
  }
  if ((arrival.flags & packet::kPorts) != 0) {
    text += concat(R"(,"sport":)", arrival.flow.source_port, R"(,"dport":)", arrival.flow.destination_port);
  }
  return text;
}

}  // namespace

Arrival arrival_of(packet::Packet const& packet) {
  Arrival arrival;
  arrival.packet = packet.index();
  arrival.time_ns = packet.arrival_ns();
  arrival.flags = packet.layers().flags;
  if (!packet.is(packet::kIpv4)) {
    read_other(packet, arrival);
    return arrival;
  }
  const std::uint8_t* l4 = packet.l4();
  arrival.has_addresses = true;
  arrival.flow = packet::flow_without_ports(packet.l3());
  if (packet.is(packet::kPorts)) {
    const packet::Ports ports = packet::load_ports(l4);
    arrival.flow.source_port = ports.source;
    arrival.flow.destination_port = ports.destination;
  } else if (packet.is(packet::kIcmp)) {
    arrival.icmp_type = l4[0];
    arrival.icmp_code = l4[1];
  }
  return arrival;
}

std::string utc_of(std::uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / kNsPerSecond);
  std::tm parts{};
  gmtime_r(&seconds, &parts);  // 64 bits of nanoseconds end in the year 2554: it cannot fail
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time_ns % kNsPerSecond);
}

std::string format_record(Instance const& instance, RecordLine const& line, Arrival const* arrival) {
  const std::string_view verdict = line.verdict == packet::Verdict::kDrop    ? "drop"
                                   : line.verdict == packet::Verdict::kAlert ? "alert"
                                   : line.verdict == packet::Verdict::kReply ? "reply"
                                                                             : "pass";
  // the name comes from the chain file, which allows only letters, digits, '-', '_' and '.': nothing to escape
  std::string text = concat(R"({"packet":)", line.packet, arrival != nullptr ? format_arrival(*arrival) : std::string(),
                            R"(,"nf":")", instance.name(), R"(","verdict":")", verdict, "\"");
  if (line.reason >= 0) {
    text += concat(R"(,"reason":")", instance.reason_name(static_cast<std::uint32_t>(line.reason)), "\"");
  }
  if (!line.fields.empty()) {
    text += concat(",", line.fields);
  }
  text += '}';
  return text;
}

std::string format_eve(std::string_view chain, Instance const& instance, AlertLine const& line, Arrival const* arrival,
                       bool numbers_frames) {
  // neither chains nor NFs may have names with something to escape
  std::string text = concat(R"({"timestamp":")", eve_time(arrival == nullptr ? 0 : arrival->time_ns), "\"");
  if (numbers_frames) {
    text += concat(R"(,"pcap_cnt":)", line.packet + 1);
  }
  text += concat(R"(,"event_type":"alert")", arrival == nullptr ? std::string() : ether_type_member(*arrival));
  if (arrival != nullptr && arrival->has_addresses) {
    const bool ports = (arrival->flags & packet::kPorts) != 0;
    text += concat(R"(,"src_ip":")", to_string(arrival->flow.source), "\"");
    text += ports ? concat(R"(,"src_port":)", arrival->flow.source_port) : std::string();
    text += concat(R"(,"dest_ip":")", to_string(arrival->flow.destination), "\"");
    text += ports ? concat(R"(,"dest_port":)", arrival->flow.destination_port) : std::string();
    text += concat(R"(,"proto":")", protocol_name(arrival->flow.protocol), "\"");
    if ((arrival->flags & packet::kIcmp) != 0) {
      text += concat(R"(,"icmp_type":)", arrival->icmp_type, R"(,"icmp_code":)", arrival->icmp_code);
    }
  }
  return text + concat(R"(,"alert":)", line.alert, R"(,"chain":")", chain, R"(","nf":")", instance.name(), R"("})");
}

}  // namespace catena::nf
