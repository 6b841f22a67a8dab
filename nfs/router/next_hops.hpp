// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "functions/lpm/port_numbers.hpp"
#include "functions/lpm/route_file.hpp"
#include "router.layout.hpp"

/// Output ports and the MAC addresses that go with them.
namespace catena::router {

using MacAddress = std::array<std::uint8_t, 6>;

/// The router's own address on a port, and the network there.
struct PortAddress {
  std::uint32_t address = 0;  ///< host order; 0: none
  std::uint8_t length = 0;
};

/// What the port table says about one port.
struct PortEntry {
  MacAddress own;       ///< becomes eth.src
  MacAddress next_hop;  ///< becomes eth.dst
  PortAddress address = {};
};
using PortTable = std::map<std::uint16_t, PortEntry>;

/// Reads `ports`, a list of {port, mac, next_hop_mac, address}; empty if the key is missing. InvalidArgument with
/// position: an entry that lacks a key but `address`, a port given twice or over kMaxPort, a MAC address that is not
/// six bytes with colons, a `mac` that is a group address (IEEE 802.3 allows none as a source), an address without
/// length, one that is no host's or that another port has.
Result<PortTable> read_port_table(nf::Config& config);

/// One next hop as the CPU uses it: the first 12 bytes of a frame that leaves through the port.
struct Hop {
  std::array<std::uint8_t, 12> macs;  ///< eth.dst, eth.src
  std::uint16_t port;
  bool rewrites_macs;
  Decision decision = kForward;  ///< else what becomes of packets to the routes of special_routes()
};

/// "Ports" of routes that lead nowhere: the router's own addresses, and broadcast addresses of networks at its ports.
inline constexpr std::uint16_t kOwnAddressPort = 65534;
inline constexpr std::uint16_t kBroadcastPort = 65535;
static_assert(kOwnAddressPort > lpm::kMaxPort);

/// Routes of length 32 to the addresses of `ports`: the router's own (kOwnAddressPort), and the first and the last one
/// of each network that has more than two (kBroadcastPort; RFC 1812, section 4.2.2.11). Pure.
std::vector<lpm::Route> special_routes(PortTable const& ports);
/// `routes` with `special` among them, sorted; a route to the same single address gives way. Pure.
std::vector<lpm::Route> with_special_routes(std::vector<lpm::Route> routes, std::vector<lpm::Route> const& special);

/// What becomes of packets by the number of their next hop (lpm::PortNumbers).
class NextHops {
 public:
  NextHops(std::span<const lpm::Route> routes, PortTable const& ports);
  lpm::PortNumbers const& numbers() const { return numbers_; }
  /// By number; entry 0 has the decision kNoRoute.
  std::vector<Hop> const& hops() const { return hops_; }

 private:
  lpm::PortNumbers numbers_;
  std::vector<Hop> hops_;
};

}  // namespace catena::router
