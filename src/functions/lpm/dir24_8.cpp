// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/dir24_8.hpp"

#include <algorithm>

namespace catena::lpm {

std::size_t count_groups(std::span<const Route> routes) {
  std::size_t groups = 0;
  std::uint32_t last = 0;
  for (Route const& route : routes) {
    if (route.length > 24 && (groups == 0 || route.address >> 8 != last)) {
      last = route.address >> 8;
      ++groups;
    }
  }
  return groups;
}

template <typename Entry>
Dir24_8<Entry> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops) {
  constexpr std::size_t kGroup = 256;
  Dir24_8<Entry> table;
  table.tbl24.resize(std::size_t{1} << 24, Entry{kNoHop});
  table.tbl8.reserve(count_groups(routes) * kGroup);
  // Sorted, a prefix comes after all that contain it, so painting in order leaves the longest on top. For the same
  // reason no prefix up to /24 paints over a group: it would have to contain the group's prefixes and come later.
  for (Route const& route : routes) {
    const Entry hop = hops.number_of(route.port);
    Entry& top = table.tbl24[route.address >> 8];
    if (route.length <= 24) {
      std::fill_n(&top, std::size_t{1} << (24 - route.length), hop);
      continue;
    }
    if ((top & kGroupFlag<Entry>) == 0) {
      const std::size_t group = table.tbl8.size() / kGroup;
      table.tbl8.resize(table.tbl8.size() + kGroup, top);
      top = static_cast<Entry>(kGroupFlag<Entry> | group);
    }
    const std::size_t group = static_cast<Entry>(top & ~kGroupFlag<Entry>);
    std::fill_n(table.tbl8.begin() + static_cast<std::ptrdiff_t>(group * kGroup + (route.address & 0xFF)),
                std::size_t{1} << (32 - route.length), hop);
  }
  return table;
}

template Dir24_8<u16> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops);
template Dir24_8<u32> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops);

}  // namespace catena::lpm
