// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <catena/core/testing/test_data.hpp>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "functions/lpm/route_file.hpp"

/// Route tables for tests, sorted as by parse_routes().
namespace catena::lpm::testing {

inline void sort_routes(std::vector<Route>& routes) {
  const auto key = [](Route const& route) { return std::pair(route.address, route.length); };
  std::sort(routes.begin(), routes.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
  routes.erase(
      std::unique(routes.begin(), routes.end(), [&](auto const& a, auto const& b) { return key(a) == key(b); }),
      routes.end());
}

/// At most `count` prefixes, many of them nested, side by side, and at both ends of the address space.
inline std::vector<Route> nested_routes(std::uint32_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random()) % bound; };
  std::vector<Route> routes;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t length = below(33);
    const std::uint32_t near = std::array{0x0A000000U, 0xFFFFFF00U, 0U, 0x0A00FFF8U}[below(4)];
    const std::uint32_t address = below(3) == 0 ? static_cast<std::uint32_t>(random()) : near + below(1024);
    routes.push_back({length == 0 ? 0 : address >> (32 - length) << (32 - length), 0,
                      static_cast<std::uint16_t>(below(3) == 0 ? kMaxPort - below(2) : below(50)),
                      static_cast<std::uint8_t>(length)});
  }
  sort_routes(routes);
  return routes;
}

/// The Internet's table, or its part in tests/data: `data` is shared_data(). The file has no next hops:
/// each route takes one by its line.
inline std::vector<Route> internet_routes(std::string const& data, std::uint32_t ports) {
  std::vector<Route> routes;
  std::FILE* unzip = ::popen(("gzip -dc '" + data + "/routes/tier1_ipv4_901899.txt.gz'").c_str(), "r");
  std::array<unsigned, 5> part{};
  while (unzip != nullptr &&
         std::fscanf(unzip, "%u.%u.%u.%u/%u", &part[0], &part[1], &part[2], &part[3], &part[4]) == 5) {
    routes.push_back({part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3], 0,
                      static_cast<std::uint16_t>(routes.size() % ports), static_cast<std::uint8_t>(part[4])});
  }
  if (unzip != nullptr) {
    ::pclose(unzip);
  }
  sort_routes(routes);
  return routes;
}

/// Addresses at the bounds of routes, one step beside them, and random ones.
inline std::vector<std::uint32_t> addresses_near(std::vector<Route> const& routes, std::size_t count) {
  std::mt19937 random(9);
  std::vector<std::uint32_t> addresses{0, 0xFFFFFFFFU};
  while (addresses.size() < count) {
    Route const& route = routes[random() % routes.size()];
    const std::uint32_t last = route.address | static_cast<std::uint32_t>(0xFFFFFFFFULL >> route.length);
    for (const std::uint32_t address : {route.address, route.address - 1, last, last + 1}) {
      addresses.push_back(address);
    }
    addresses.push_back(static_cast<std::uint32_t>(random()));
  }
  return addresses;
}

}  // namespace catena::lpm::testing
