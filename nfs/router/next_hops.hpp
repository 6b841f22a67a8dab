// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "route_file.hpp"

/// Output ports and the MAC addresses that go with them.
namespace catena::router {

using MacAddress = std::array<std::uint8_t, 6>;

/// What the port table says about one port.
struct PortMacs {
  MacAddress own;       ///< becomes eth.src
  MacAddress next_hop;  ///< becomes eth.dst
};
using PortTable = std::map<std::uint16_t, PortMacs>;

/// Reads `ports`, a list of {port, mac, next_hop_mac}; empty if the key is missing. InvalidArgument with position: an
/// entry that lacks a key, a port given twice or over kMaxPort, a MAC address that is not six bytes with colons, a
/// `mac` that is a group address (IEEE 802.3 allows none as a source).
Result<PortTable> read_port_table(nf::Config& config);

/// One next hop as the CPU uses it: the first 12 bytes of a frame that leaves through the port.
struct Hop {
  std::array<std::uint8_t, 12> macs;  ///< eth.dst, eth.src
  std::uint16_t port;
  bool rewrites_macs;
};

/// The distinct ports of a route table, numbered from 1; number 0 stands for "no route".
class NextHops {
 public:
  NextHops(std::span<const Route> routes, PortTable const& ports);

  std::uint16_t number_of(std::uint16_t port) const { return numbers_[port]; }
  /// By number; entry 0 is unused.
  std::vector<Hop> const& hops() const { return hops_; }

 private:
  std::vector<std::uint16_t> numbers_;  // by port, 0: not used by a route
  std::vector<Hop> hops_;
};

}  // namespace catena::router
