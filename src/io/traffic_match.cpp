// SPDX-License-Identifier: Apache-2.0
#include "io/traffic_match.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/flow_key.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace catena::io {
namespace {

constexpr std::uint16_t kVlanMask = 0x0FFF;

std::uint16_t vlan_of(const std::uint8_t* frame, std::uint32_t length) {
  constexpr std::uint32_t kAt = packet::kEtherTypeAt;
  const bool is_tagged = length >= kAt + packet::kTagBytes && packet::is_tag(packet::load_be16(frame + kAt));
  return is_tagged ? packet::load_be16(frame + kAt + 2) & kVlanMask : kUntagged;
}

bool contains(packet::Ipv4Prefix const& prefix, packet::Address const& address) {
  return ((address.v4() ^ prefix.address) & prefix.mask()) == 0;
}

bool contains(PortRange const& ports, std::uint16_t port) { return ports.first <= port && port <= ports.last; }

bool asks_for_layers(TrafficMatch const& match) {
  return match.source || match.destination || match.protocol || match.source_ports || match.destination_ports;
}

bool asks_for_ports(TrafficMatch const& match) { return match.source_ports || match.destination_ports; }

bool is_without_ports(TrafficMatch const& match) {
  return match.protocol && *match.protocol != packet::kProtocolTcp && *match.protocol != packet::kProtocolUdp;
}

/// Whether a packet that meets all else meets the conditions over ports.
Met has_ports(TrafficMatch const& match, const std::uint8_t* frame, packet::Layers const& layers) {
  const auto [state, ports] = packet::shown_ports(frame, layers);
  if (state != packet::ShownPorts::State::kShown) {
    return state == packet::ShownPorts::State::kHidden ? Met::kHidden : Met::kNo;
  }
  return (!match.source_ports || contains(*match.source_ports, ports.source)) &&
                 (!match.destination_ports || contains(*match.destination_ports, ports.destination))
             ? Met::kYes
             : Met::kNo;
}

/// Whether a frame meets the conditions behind its tag.
Met fits(TrafficMatch const& match, const std::uint8_t* frame, packet::Layers const& layers) {
  if (!asks_for_layers(match)) {
    return Met::kYes;
  }
  if ((layers.flags & packet::kIpv4) == 0) {
    return Met::kNo;
  }
  const packet::FlowKey key = packet::flow_without_ports(frame + layers.l3);
  if ((match.source && !contains(*match.source, key.source)) ||
      (match.destination && !contains(*match.destination, key.destination)) ||
      (match.protocol && *match.protocol != key.protocol)) {
    return Met::kNo;
  }
  return asks_for_ports(match) ? has_ports(match, frame, layers) : Met::kYes;
}

Overlap overlap(std::uint32_t a, std::uint32_t b) { return a == b ? Overlap::kSame : Overlap::kNone; }

Overlap overlap(packet::Ipv4Prefix const& a, packet::Ipv4Prefix const& b) {
  if (((a.address ^ b.address) & a.mask() & b.mask()) != 0) {
    return Overlap::kNone;
  }
  return a.length == b.length ? Overlap::kSame : a.length > b.length ? Overlap::kInside : Overlap::kAround;
}

Overlap overlap(PortRange const& a, PortRange const& b) {
  if (a.last < b.first || b.last < a.first) {
    return Overlap::kNone;
  }
  if (a == b) {
    return Overlap::kSame;
  }
  if (b.first <= a.first && a.last <= b.last) {
    return Overlap::kInside;
  }
  return a.first <= b.first && b.last <= a.last ? Overlap::kAround : Overlap::kCrossing;
}

/// Of a condition that one of the two, or both, may leave open.
template <typename Condition>
Overlap overlap(std::optional<Condition> const& a, std::optional<Condition> const& b) {
  if (a && b) {
    return overlap(*a, *b);
  }
  return a ? Overlap::kInside : b ? Overlap::kAround : Overlap::kSame;
}

/// Of frames that have to meet two conditions.
Overlap both(Overlap a, Overlap b) {
  if (a == Overlap::kNone || b == Overlap::kNone) {
    return Overlap::kNone;
  }
  if (a == b || b == Overlap::kSame) {
    return a;
  }
  return a == Overlap::kSame ? b : Overlap::kCrossing;
}

/// Larger for a match that lies inside another.
std::uint64_t narrowness(TrafficMatch const& match) {
  const auto of_prefix = [](auto const& prefix) { return prefix ? prefix->length + std::uint64_t{1} : 0; };
  const auto of_ports = [](auto const& ports) {
    constexpr std::uint64_t kAll = std::numeric_limits<std::uint16_t>::max() + std::uint64_t{1};
    return ports ? kAll - (ports->last - ports->first) : 0;
  };
  return (match.vlan ? 1U : 0U) + (match.protocol ? 1U : 0U) + of_prefix(match.source) + of_prefix(match.destination) +
         of_ports(match.source_ports) + of_ports(match.destination_ports);
}

std::string to_string(PortRange const& ports) {
  return ports.first == ports.last ? concat(ports.first) : concat(ports.first, "-", ports.last);
}

}  // namespace

std::string to_string(TrafficMatch const& match) {
  std::string text;
  const auto add = [&text](std::string_view key, std::string const& value) {
    text += concat(text.empty() ? "" : ", ", key, " ", value);
  };
  if (match.vlan) {
    add("vlan", *match.vlan == kUntagged ? "untagged" : concat(*match.vlan));
  }
  if (match.source) {
    add("src", packet::to_string(*match.source));
  }
  if (match.destination) {
    add("dst", packet::to_string(*match.destination));
  }
  if (match.protocol) {
    add("protocol", concat(int{*match.protocol}));
  }
  if (match.source_ports) {
    add("sport", to_string(*match.source_ports));
  }
  if (match.destination_ports) {
    add("dport", to_string(*match.destination_ports));
  }
  return text.empty() ? "everything else" : text;
}

Met meets(TrafficMatch const& match, const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers) {
  return match.vlan && *match.vlan != vlan_of(frame, length) ? Met::kNo : fits(match, frame, layers);
}

Overlap overlap(TrafficMatch const& a, TrafficMatch const& b) {
  // ports are those of TCP and UDP alone
  if ((asks_for_ports(a) && is_without_ports(b)) || (asks_for_ports(b) && is_without_ports(a))) {
    return Overlap::kNone;
  }
  Overlap all = overlap(a.vlan, b.vlan);
  all = both(all, overlap(a.source, b.source));
  all = both(all, overlap(a.destination, b.destination));
  all = both(all, overlap(a.protocol, b.protocol));
  all = both(all, overlap(a.source_ports, b.source_ports));
  return both(all, overlap(a.destination_ports, b.destination_ports));
}

TrafficTable::TrafficTable(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](Entry const& a, Entry const& b) { return narrowness(a.match) > narrowness(b.match); });
  for (Entry const& entry : entries_) {
    needs_layers_ = needs_layers_ || asks_for_layers(entry.match);
    if (entry.match.vlan && list_of_vlan_[*entry.match.vlan] == 0) {
      list_of_vlan_[*entry.match.vlan] = static_cast<std::uint16_t>(lists_.size());
      lists_.emplace_back();
    }
  }
  for (std::size_t position = 0; position < entries_.size(); ++position) {
    if (std::optional<std::uint16_t> const& vlan = entries_[position].match.vlan) {
      lists_[list_of_vlan_[*vlan]].push_back(position);
      continue;
    }
    for (std::vector<std::size_t>& list : lists_) {
      list.push_back(position);
    }
  }
}

TrafficTable::Found TrafficTable::owner_of(const std::uint8_t* frame, std::uint32_t length) const {
  const packet::Layers layers = needs_layers_ ? packet::parse(frame, length) : packet::Layers();
  for (const std::size_t position : lists_[list_of_vlan_[vlan_of(frame, length)]]) {
    const Met met = fits(entries_[position].match, frame, layers);
    if (met == Met::kHidden) {
      return {.owner = std::nullopt, .is_hidden = true};
    }
    if (met == Met::kYes) {
      return {entries_[position].owner};
    }
  }
  return {};
}

}  // namespace catena::io
