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

/// Output ports with their MAC addresses.
namespace catena::router {

using nf::MacAddress;

/// The router's own address on a port, and its network.
struct PortAddress {
  std::uint32_t address = 0;  ///< host order; 0: no address
  std::uint8_t length = 0;
};

/// Port table entry of one port.
struct PortEntry {
  MacAddress own;       ///< becomes eth.src
  MacAddress next_hop;  ///< becomes eth.dst
  PortAddress address = {};
};
using PortTable = std::map<std::uint16_t, PortEntry>;

/// Reads `ports`, a list of {port, mac, next_hop_mac, address}; empty if the key is missing. InvalidArgument with
/// position: an entry without a key other than `address`, a port given twice or over kMaxPort, a MAC address that is
/// not six bytes with colons, a `mac` that is a group address (IEEE 802.3 does not allow one as a source), an address
/// without length, an address that is not a host's or that another port has.
Result<PortTable> read_port_table(nf::Config& config);

/// One next hop in the CPU's format: the first 12 bytes of a frame sent through the port.
struct Hop {
  std::array<std::uint8_t, 12> macs;  ///< eth.dst, eth.src
  std::uint16_t port;
  bool rewrites_macs;
  Decision decision = kForward;  ///< not kForward for the routes of special_routes()
};

/// Pseudo ports of routes to the router's own addresses, and to broadcast addresses of networks at its ports.
inline constexpr std::uint16_t kOwnAddressPort = 65534;
inline constexpr std::uint16_t kBroadcastPort = 65535;
static_assert(kOwnAddressPort > lpm::kMaxPort);

/// Routes of length 32 to the addresses of `ports`: the router's own (kOwnAddressPort), and the first and the last
/// address of each network with more than two (kBroadcastPort; RFC 1812, section 4.2.2.11). Pure.
std::vector<lpm::Route> special_routes(PortTable const& ports);
/// `routes` merged with `special`, sorted; a special route replaces a route to the same single address. Pure.
std::vector<lpm::Route> with_special_routes(std::vector<lpm::Route> routes, std::vector<lpm::Route> const& special);

/// The addresses of `special`, which no host can have, in the form of is_in_table(). Pure.
std::vector<std::uint32_t> address_table(std::vector<lpm::Route> const& special);

/// Next hops and decisions, by next hop number (lpm::PortNumbers).
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
