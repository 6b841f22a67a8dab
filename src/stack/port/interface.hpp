// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/address.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace catena::stack {

/// An address of the host's own at an interface.
struct InterfaceAddress {
  packet::Address address;
  std::uint8_t prefix;  ///< bits
};

/// "10.123.0.1/24".
std::string to_string(InterfaceAddress const& address);
/// Whether `address` is in the network of `network`.
bool is_in_network(packet::Address const& address, InterfaceAddress const& network);

/// The addresses of a network interface of the host, but for link-local ones; empty: there is no such interface.
std::vector<InterfaceAddress> addresses_at(std::string const& interface);
/// AlreadyExists: one of `addresses` is in a network of another interface than `interface`, so the host would send
/// its packets there. Unavailable, with the system's reason.
Status check_networks(std::string const& interface, std::span<const InterfaceAddress> addresses);
/// Gives a network interface of the host its addresses, in addition to those it has, and brings it up.
/// PermissionDenied: needs CAP_NET_ADMIN. NotFound: no such interface. Unavailable, with the system's reason.
Status bring_up(std::string const& interface, std::span<const InterfaceAddress> addresses);

}  // namespace catena::stack
