// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>
#include <catena/nf/text_file.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "mapping_table.hpp"

namespace catena::nat {

inline constexpr std::uint32_t kMaxPorts = 64;  ///< of a chain's rx, usable in `inside_ports`

/// External addresses first .. last, host order.
struct AddressRange {
  std::uint32_t first;
  std::uint32_t last;
};

/// The two sides of the NAT. Immutable.
struct Realms {
  std::vector<packet::Ipv4Prefix> inside;
  std::uint64_t inside_ports = ~std::uint64_t{0};  ///< bit n: packets on port n may come from inside
  std::vector<AddressRange> external;              ///< sorted by address, without overlaps

  bool is_inside(std::uint32_t address) const {
    return std::any_of(inside.begin(), inside.end(), [address](packet::Ipv4Prefix const& prefix) {
      return (address & prefix.mask()) == prefix.address;
    });
  }
  bool is_inside_port(std::uint16_t port) const {
    return inside_ports == ~std::uint64_t{0} || (port < kMaxPorts && (inside_ports >> port & 1U) != 0);
  }
  bool is_external(std::uint32_t address) const {
    const auto behind =
        std::upper_bound(external.begin(), external.end(), address,
                         [](std::uint32_t wanted, AddressRange const& range) { return wanted < range.first; });
    return behind != external.begin() && address <= std::prev(behind)->last;
  }
};

struct NatConfig {
  nf::Shard shard;
  Realms realms;
  bool drops_to_inside = true;      ///< drop packets from outside to an inside address
  std::uint32_t echo_rate = 1000;   ///< echo replies per second of all shards
  MappingTable::Settings mappings;  ///< of all shards
};

inline constexpr std::uint32_t kMaxExternalAddresses = 1024;
inline constexpr std::uint32_t kMaxInsidePrefixes = 64;

/// Reads the whole mapping. InvalidArgument, with the position, for values not allowed by the README.
Result<NatConfig> read_nat_config(nf::Config& config);

}  // namespace catena::nat
