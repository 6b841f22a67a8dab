// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "functions/classify/dpdk/acl.hpp"
#include "functions/classify/linear_search.hpp"

/// The match of rte_acl for a tuple, possible as a packet or not.
namespace catena::classify::testing {

inline int find_by_acl(Acl const& acl, Tuple const& tuple) {
  AclKey key{};
  write_acl_key(flow_key_of(tuple), key);
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
