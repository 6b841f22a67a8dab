// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>
#include <catena/packet/address.hpp>

#include <cstdint>
#include <string>

namespace catena::packet {

/// An IPv4 prefix. Bits of `address` after the first `length` are kept as written.
struct Ipv4Prefix {
  std::uint32_t address = 0;  ///< host order
  std::uint8_t length = 32;

  std::uint32_t mask() const { return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length); }
  bool operator==(Ipv4Prefix const&) const = default;
};
/// "10.1.0.0/16".
inline std::string to_string(Ipv4Prefix const& prefix) {
  return concat(to_string(Address::of_v4(prefix.address)), "/", int{prefix.length});
}

}  // namespace catena::packet
