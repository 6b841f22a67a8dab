// SPDX-License-Identifier: Apache-2.0
#include "next_hops.hpp"

#include <algorithm>

namespace catena::router {

NextHops::NextHops(std::span<const Route> routes, PortTable const& ports) : numbers_(kMaxPort + 1), hops_(1) {
  for (Route const& route : routes) {
    if (numbers_[route.port] != 0) {
      continue;
    }
    numbers_[route.port] = static_cast<std::uint16_t>(hops_.size());
    Hop hop{{}, route.port, false};
    if (const auto entry = ports.find(route.port); entry != ports.end()) {
      hop.rewrites_macs = true;
      std::copy(entry->second.next_hop.begin(), entry->second.next_hop.end(), hop.macs.begin());
      std::copy(entry->second.own.begin(), entry->second.own.end(), hop.macs.begin() + 6);
    }
    hops_.push_back(hop);
  }
}

}  // namespace catena::router
