// SPDX-License-Identifier: Apache-2.0
#include "inbound_index.hpp"

#include <algorithm>

namespace catena::ipsec {

InboundIndex::InboundIndex(std::span<const Association> associations) {
  for (std::uint32_t i = 0; i < associations.size(); ++i) {
    Association const& association = associations[i];
    by_spi_.push_back({std::uint64_t{association.destination} << 32 | association.spi, i});
    if (association.udp) {
      udp_ports_.push_back(std::uint64_t{association.destination} << 16 | association.udp->destination);
    }
  }
  std::sort(by_spi_.begin(), by_spi_.end(), [](Entry const& a, Entry const& b) { return a.key < b.key; });
  std::sort(udp_ports_.begin(), udp_ports_.end());
}

std::optional<std::uint32_t> InboundIndex::find(std::uint32_t spi, std::uint32_t destination) const {
  const std::uint64_t key = std::uint64_t{destination} << 32 | spi;
  const auto at = std::lower_bound(by_spi_.begin(), by_spi_.end(), key,
                                   [](Entry const& entry, std::uint64_t wanted) { return entry.key < wanted; });
  if (at == by_spi_.end() || at->key != key) {
    return std::nullopt;
  }
  return at->association;
}

bool InboundIndex::receives_udp(std::uint32_t destination, std::uint16_t port) const {
  return std::binary_search(udp_ports_.begin(), udp_ports_.end(), std::uint64_t{destination} << 16 | port);
}

bool InboundIndex::receives_udp(std::uint32_t destination) const {
  const auto at = std::lower_bound(udp_ports_.begin(), udp_ports_.end(), std::uint64_t{destination} << 16);
  return at != udp_ports_.end() && *at >> 16 == destination;
}

bool InboundIndex::is_tunnel_end(std::uint32_t destination) const {
  const std::uint64_t first = std::uint64_t{destination} << 32;
  const auto at = std::lower_bound(by_spi_.begin(), by_spi_.end(), first,
                                   [](Entry const& entry, std::uint64_t wanted) { return entry.key < wanted; });
  return at != by_spi_.end() && at->key >> 32 == destination;
}

}  // namespace catena::ipsec
