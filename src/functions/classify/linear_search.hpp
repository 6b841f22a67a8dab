// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/flow_key.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace catena::classify::testing {

/// A packet for the oracle.
struct Tuple {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint32_t sport = 0;
  std::uint32_t dport = 0;
  std::uint32_t protocol = 0;
  bool has_ports = true;
};

inline packet::FlowKey flow_key_of(Tuple const& tuple) {
  return packet::FlowKey::of_v4(tuple.src, tuple.dst, static_cast<std::uint16_t>(tuple.sport),
                                static_cast<std::uint16_t>(tuple.dport), static_cast<std::uint8_t>(tuple.protocol));
}

/// A rule as inclusive bounds, and first match by its definition: the oracle of rte_acl and of the bit vectors. Shares
/// no code with either, nor with the parser.
struct PlainRule {
  std::uint32_t src_low = 0, src_high = 0xFFFFFFFF;
  std::uint32_t dst_low = 0, dst_high = 0xFFFFFFFF;
  std::uint32_t sport_low = 0, sport_high = 65535;
  std::uint32_t dport_low = 0, dport_high = 65535;
  std::optional<std::uint32_t> protocol;

  bool matches(Tuple const& packet) const {
    if (packet.src < src_low || packet.src > src_high || packet.dst < dst_low || packet.dst > dst_high) {
      return false;
    }
    if (protocol.has_value() && *protocol != packet.protocol) {
      return false;
    }
    if (!packet.has_ports) {
      return sport_low == 0 && sport_high == 65535 && dport_low == 0 && dport_high == 65535;
    }
    return packet.sport >= sport_low && packet.sport <= sport_high && packet.dport >= dport_low &&
           packet.dport <= dport_high;
  }
};

inline int first_match(std::vector<PlainRule> const& rules, Tuple const& packet) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].matches(packet)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace catena::classify::testing
