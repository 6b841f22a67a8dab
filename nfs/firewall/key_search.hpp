// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "acl.hpp"
#include "bit_vector.hpp"
#include "linear_search.hpp"
#include "search.kernel.hpp"

/// What rte_acl and the kernel's search find for a tuple that need not be possible as a packet.
namespace catena::firewall::testing {

inline int find_by_acl(Acl const& acl, Tuple const& tuple) {
  AclKey key{};
  key.protocol = static_cast<std::uint8_t>(tuple.protocol);
  key.src = __builtin_bswap32(tuple.src);
  key.dst = __builtin_bswap32(tuple.dst);
  key.sport = __builtin_bswap16(static_cast<std::uint16_t>(tuple.sport));
  key.dport = __builtin_bswap16(static_cast<std::uint16_t>(tuple.dport));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&key);
  std::uint32_t match = 0;
  if (tuple.has_ports) {
    acl.find_with_ports(&bytes, &match, 1);
  } else {
    acl.find_without_ports(&bytes, &match, 1);
  }
  return static_cast<int>(match) - 1;
}

/// The tables as search.kernel.hpp takes them, on the host.
struct HostTables : BitVector {
  explicit HostTables(BitVector tables) : BitVector(std::move(tables)) {}
  static std::uint32_t lowest_bit(std::uint32_t value) { return static_cast<std::uint32_t>(std::countr_zero(value)); }
};

inline int find_by_bit_vector(HostTables const& tables, Tuple const& tuple) {
  Key key{};
  key.src = tuple.src;
  key.dst = tuple.dst;
  key.sport = static_cast<std::uint16_t>(tuple.sport);
  key.dport = static_cast<std::uint16_t>(tuple.dport);
  key.protocol = static_cast<std::uint8_t>(tuple.protocol);
  key.has_ports = tuple.has_ports ? 1 : 0;
  return find_rule(tables, key);
}

}  // namespace catena::firewall::testing
