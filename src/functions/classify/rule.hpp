// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/text_file.hpp>

#include <cstddef>
#include <cstdint>

namespace catena::classify {

/// Maximum rules of one firewall.
inline constexpr std::size_t kMaxRules = 10'000;

enum class Action : std::uint8_t { kDeny = 0, kAllow = 1 };

/// Ports first .. last, both included.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0xFFFF;

  bool is_any() const { return first == 0 && last == 0xFFFF; }
  bool operator==(PortRange const&) const = default;
};

/// One line of a rules file. A packet matches if every field does. A packet without ports (no TCP or UDP, a later
/// fragment) matches only if both port ranges are any.
struct Rule {
  packet::Ipv4Prefix src{0, 0};
  packet::Ipv4Prefix dst{0, 0};
  PortRange sport;
  PortRange dport;
  std::uint8_t protocol = 0;       ///< bits outside the mask are 0
  std::uint8_t protocol_mask = 0;  ///< compared bits of the packet's protocol
  Action action = Action::kDeny;

  bool matches_without_ports() const { return sport.is_any() && dport.is_any(); }
  bool operator==(Rule const&) const = default;
};

}  // namespace catena::classify
