// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "functions/classify/dpdk/acl.hpp"
#include "functions/classify/linear_search.hpp"

/// The match of rte_acl for a tuple, possible as a packet or not.
namespace catena::classify::testing {

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

}  // namespace catena::classify::testing
