// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/address.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace catena::packet {

/// An address in network order, as in6_addr has it. Thread rule: a value.
using AddressBytes = std::array<std::uint8_t, sizeof(Address)>;

/// The bytes of an address, and the address of 16 bytes. Thread rule: pure.
AddressBytes to_bytes(Address const& address);
Address address_of(std::span<const std::uint8_t, sizeof(Address)> bytes);

}  // namespace catena::packet
