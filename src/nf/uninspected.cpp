// SPDX-License-Identifier: Apache-2.0
#include "nf/uninspected.hpp"

#include <catena/packet/ether_type.hpp>

#include <algorithm>

namespace catena::nf {
namespace {

struct NamedType {
  std::string_view name;
  std::uint16_t type;
};

/// Well-known EtherTypes of IEEE. Four more names follow: of any tag, of LLC, of any other EtherType, and of frames
/// that are too short for one.
constexpr std::size_t kUnnamed = 4;
constexpr std::array<NamedType, UninspectedCounts::kEtherTypes - kUnnamed> kTypes{{
    {"ipv4", packet::kEtherTypeIpv4},
    {"arp", packet::kEtherTypeArp},
    {"ipv6", packet::kEtherTypeIpv6},
    {"wake_on_lan", 0x0842},
    {"trill", 0x22F3},
    {"mac_control", 0x8808},
    {"slow_protocols", 0x8809},
    {"mpls", 0x8847},
    {"mpls_multicast", 0x8848},
    {"pppoe_discovery", 0x8863},
    {"pppoe_session", 0x8864},
    {"eapol", 0x888E},
    {"profinet", 0x8892},
    {"ethercat", 0x88A4},
    {"lldp", 0x88CC},
    {"macsec", 0x88E5},
    {"backbone_bridge", 0x88E7},
    {"mvrp", 0x88F5},
    {"ptp", 0x88F7},
    {"cfm", 0x8902},
    {"fcoe", 0x8906},
    {"roce", 0x8915},
    {"loopback", 0x9000},
}};
constexpr std::size_t kIpv4 = 0;
static_assert(kTypes[kIpv4].type == packet::kEtherTypeIpv4);
constexpr std::size_t kVlan = kTypes.size();
constexpr std::size_t kLlc = kVlan + 1;
constexpr std::size_t kOther = kVlan + 2;
constexpr std::size_t kShort = kVlan + 3;
constexpr std::array<std::string_view, kUnnamed> kUnnamedTypes{"vlan", "llc", "other", "short"};
static_assert(kShort + 1 == UninspectedCounts::kEtherTypes);

enum Reason : std::size_t { kNotIpv4, kLinkLocal, kMalformed, kTruncated, kHeader };
constexpr std::array<std::string_view, 5> kReasons{"not_ipv4", "link_local", "malformed", "truncated", "header"};
static_assert(kReasons.size() == 2 + UninspectedCounts::kOtherReasons);
constexpr std::array<std::string_view, UninspectedCounts::kTunnels> kTunnelReasons{
    "tunnel_gre", "tunnel_ipip", "tunnel_6in4", "tunnel_vxlan", "tunnel_geneve", "tunnel_teredo"};

/// Position of the EtherType after the tags that parse() looks through.
std::size_t type_of(packet::Packet const& packet) {
  if (packet.length() < packet::kEthernetBytes) {
    return kShort;
  }
  const std::uint16_t type = packet::ether_type_of(packet.frame(), packet.length()).type;
  if (type <= packet::kMaxLlcLength) {
    return kLlc;
  }
  if (packet::is_tag(type)) {
    return kVlan;
  }
  const auto found = std::ranges::find(kTypes, type, &NamedType::type);
  return found == kTypes.end() ? kOther : static_cast<std::size_t>(found - kTypes.begin());
}

}  // namespace

UninspectedKind UninspectedCounts::kind(std::size_t number) {
  if (number >= 2 * kPairs) {
    return {kTunnelReasons[number - 2 * kPairs], kTypes[kIpv4].name, "outer"};
  }
  const std::size_t pair = number / 2;
  const std::string_view verdict = number % 2 == 0 ? "pass" : "drop";
  if (pair >= 2 * kEtherTypes) {
    return {kReasons[kMalformed + pair - 2 * kEtherTypes], kTypes[kIpv4].name, verdict};
  }
  const std::size_t type = pair % kEtherTypes;
  return {kReasons[pair / kEtherTypes], type < kTypes.size() ? kTypes[type].name : kUnnamedTypes[type - kTypes.size()],
          verdict};
}

void UninspectedCounts::add(packet::Packet const& packet, bool is_dropped) {
  const std::uint16_t flags = packet.layers().flags;
  const auto pair_of = [](Reason reason) { return 2 * kEtherTypes + reason - kMalformed; };
  std::size_t pair = 0;
  if ((flags & packet::kIpv4) != 0) {
    pair = pair_of((flags & packet::kTruncated) != 0 ? kTruncated : kHeader);
  } else {
    const std::size_t type = type_of(packet);
    pair = packet::is_link_local(flags) ? kEtherTypes + type : type == kIpv4 ? pair_of(kMalformed) : type;
  }
  count(2 * pair + (is_dropped ? 1 : 0), 1);
}

void UninspectedCounts::add(packet::Tunnel tunnel) { count(2 * kPairs + static_cast<std::size_t>(tunnel) - 1, 1); }

}  // namespace catena::nf
