// SPDX-License-Identifier: Apache-2.0
#include "next_hops.hpp"

#include <algorithm>
#include <bit>

namespace catena::router {

namespace {

bool before(lpm::Route const& a, lpm::Route const& b) {
  return a.address != b.address ? a.address < b.address : a.length < b.length;
}

}  // namespace

std::vector<lpm::Route> special_routes(PortTable const& ports) {
  constexpr std::uint8_t kHost = 32;
  constexpr std::uint8_t kLongestWithBroadcast = 30;
  std::vector<lpm::Route> routes;
  for (auto const& [port, entry] : ports) {
    auto const [address, length] = entry.address;
    if (address == 0) {
      continue;
    }
    routes.push_back({address, 0, kOwnAddressPort, kHost});
    if (length <= kLongestWithBroadcast) {
      const std::uint32_t hosts = static_cast<std::uint32_t>(std::uint64_t{0xFFFFFFFF} >> length);
      routes.push_back({address & ~hosts, 0, kBroadcastPort, kHost});
      routes.push_back({address | hosts, 0, kBroadcastPort, kHost});
    }
  }
  // ports may share a network: its broadcast addresses once, and an own address before a broadcast one
  std::stable_sort(routes.begin(), routes.end(), [](lpm::Route const& a, lpm::Route const& b) {
    return a.address != b.address ? a.address < b.address : a.port < b.port;
  });
  routes.erase(std::unique(routes.begin(), routes.end(),
                           [](lpm::Route const& a, lpm::Route const& b) { return a.address == b.address; }),
               routes.end());
  return routes;
}

std::vector<lpm::Route> with_special_routes(std::vector<lpm::Route> routes, std::vector<lpm::Route> const& special) {
  if (special.empty()) {
    return routes;
  }
  std::vector<lpm::Route> merged(routes.size() + special.size());
  // of equal prefixes the first range's comes first, and alone it stays
  std::merge(special.begin(), special.end(), routes.begin(), routes.end(), merged.begin(), before);
  merged.erase(std::unique(merged.begin(), merged.end(),
                           [](lpm::Route const& a, lpm::Route const& b) { return !before(a, b) && !before(b, a); }),
               merged.end());
  return merged;
}

std::vector<std::uint32_t> address_table(std::vector<lpm::Route> const& special) {
  std::vector<std::uint32_t> table(std::bit_ceil(2 * special.size() + 1));
  const auto size = static_cast<std::uint32_t>(table.size());
  for (lpm::Route const& route : special) {
    std::uint32_t at = first_in_table(route.address, size);
    while (table[at] != 0) {
      at = (at + 1) & (size - 1);
    }
    table[at] = route.address;
  }
  return table;
}

NextHops::NextHops(std::span<const lpm::Route> routes, PortTable const& ports)
    : numbers_(routes), hops_(1, Hop{{}, 0, false, kNoRoute}) {
  for (const std::uint16_t port : std::span(numbers_.ports()).subspan(1)) {
    Hop hop{{}, port, false};
    if (port > lpm::kMaxPort) {
      hop = {{}, 0, false, port == kOwnAddressPort ? kToRouter : kBroadcast};
    } else if (const auto entry = ports.find(port); entry != ports.end()) {
      hop.rewrites_macs = true;
      std::copy(entry->second.next_hop.begin(), entry->second.next_hop.end(), hop.macs.begin());
      std::copy(entry->second.own.begin(), entry->second.own.end(), hop.macs.begin() + 6);
    }
    hops_.push_back(hop);
  }
}

}  // namespace catena::router
