// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/decimal.hpp>
#include <catena/core/ipv4.hpp>
#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace catena {

/// A numeric address and port of this or another host, without name resolution.
struct SocketAddress {
  std::string text;  ///< as written by the user
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr const* raw() const { return reinterpret_cast<sockaddr const*>(&storage); }
  int family() const { return storage.ss_family; }
  /// Whether it is a wildcard address, or port 0.
  bool is_any() const {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    std::memcpy(&v6, &storage, sizeof v6);
    std::memcpy(&v4, &storage, sizeof v4);
    return family() == AF_INET6 ? v6.sin6_port == 0 || IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)
                                : v4.sin_port == 0 || v4.sin_addr.s_addr == INADDR_ANY;
  }
  friend bool operator==(SocketAddress const& one, SocketAddress const& other) {
    return one.size == other.size && std::memcmp(&one.storage, &other.storage, one.size) == 0;
  }
};

/// "192.0.2.1:9464" or "[2001:db8::1]:9464". InvalidArgument, without the text, for any other form.
inline Result<SocketAddress> parse_socket_address(std::string_view text) {
  const Status wrong = absl::InvalidArgumentError(
      concat("write an address with a port, as 192.0.2.1:7400 or [::1]:7400", leading_zeros_advice(text)));
  const std::size_t colon = text.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  constexpr std::uint64_t kMaxPort = 0xFFFF;
  const std::optional<std::uint64_t> number_of_port = parse_decimal(digits, kMaxPort);
  if (!number_of_port) {
    return wrong;
  }
  const auto port = static_cast<std::uint16_t>(*number_of_port);
  SocketAddress address{std::string(text)};
  const std::string host(text.substr(0, colon));
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
    std::memcpy(&address.storage, &v6, sizeof v6);
  } else if (const auto number = parse_ipv4_address(host)) {
    v4.sin_addr.s_addr = htonl(*number);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.size = sizeof v4;
    std::memcpy(&address.storage, &v4, sizeof v4);
  } else {
    return wrong;
  }
  return address;
}

}  // namespace catena
