// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/address.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace catena::stack {

/// An address of the host's own at an interface.
struct InterfaceAddress {
  packet::Address address;
  std::uint8_t prefix;  ///< bits
};

/// Gives a network interface of the host its addresses, in addition to those it has, and brings it up.
/// PermissionDenied: needs CAP_NET_ADMIN. NotFound: no such interface. Unavailable, with the system's reason.
Status bring_up(std::string const& interface, std::span<const InterfaceAddress> addresses);

}  // namespace catena::stack
