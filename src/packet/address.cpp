// SPDX-License-Identifier: Apache-2.0
#include "packet/address_bytes.hpp"

#include <catena/core/ipv4.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace catena::packet {
namespace {

std::uint64_t load_be64(const std::uint8_t* at) { return std::uint64_t{load_be32(at)} << 32 | load_be32(at + 4); }

void store_be64(std::uint8_t* at, std::uint64_t value) {
  store_be32(at, static_cast<std::uint32_t>(value >> 32));
  store_be32(at + 4, static_cast<std::uint32_t>(value));
}

}  // namespace

AddressBytes to_bytes(Address const& address) {
  AddressBytes bytes;
  store_be64(bytes.data(), address.high());
  store_be64(bytes.data() + 8, address.low());
  return bytes;
}

Address address_of(std::span<const std::uint8_t, sizeof(Address)> bytes) {
  return Address::of_words(load_be64(bytes.data()), load_be64(bytes.data() + 8));
}

std::optional<Address> Address::parse(std::string_view text) {
  if (const std::optional<std::uint32_t> v4 = parse_ipv4_address(text)) {
    return of_v4(*v4);
  }
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  std::copy(text.begin(), text.end(), terminated.begin());
  AddressBytes bytes{};
  if (inet_pton(AF_INET6, terminated.data(), bytes.data()) == 1) {
    return address_of(bytes);
  }
  return std::nullopt;
}

std::string to_string(Address const& address) {
  if (address.is_v4()) {
    const std::uint32_t v4 = address.v4();
    return concat(v4 >> 24, ".", v4 >> 16 & 0xFF, ".", v4 >> 8 & 0xFF, ".", v4 & 0xFF);
  }
  const AddressBytes bytes = to_bytes(address);
  std::array<char, INET6_ADDRSTRLEN> text;
  return inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());  // the space is enough, so it cannot fail
}

}  // namespace catena::packet
