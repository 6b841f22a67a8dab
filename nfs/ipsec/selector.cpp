// SPDX-License-Identifier: Apache-2.0
#include "selector.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>

#include <array>

namespace catena::ipsec {
namespace {

struct NamedProtocol {
  std::string_view name;
  std::int32_t number;
};
constexpr std::array<NamedProtocol, 5> kProtocols{{
    {"any", -1},
    {"icmp", packet::kProtocolIcmp},
    {"tcp", packet::kProtocolTcp},
    {"udp", packet::kProtocolUdp},
    {"esp", packet::kProtocolEsp},
}};

/// Whether `reader` takes all of `text`.
template <typename Reader>
bool reads_all(std::string_view text, Reader reader) {
  nf::TextCursor cursor(text, "");
  return cursor.next_line() && reader(cursor) && cursor.at_end() && !cursor.next_line();
}

/// A prefix, or every address for `any`.
Result<Prefix> read_prefix(nf::Config& config, std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string_or(key, "any"));
  if (text == "any") {
    return Prefix{};
  }
  CATENA_ASSIGN_OR_RETURN(const packet::Ipv4Prefix prefix, config.ipv4_prefix(key));
  return Prefix{prefix.address, prefix.mask()};
}

Result<std::int32_t> read_protocol(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string_or("protocol", "any"));
  for (NamedProtocol const& known : kProtocols) {
    if (known.name == text) {
      return known.number;
    }
  }
  std::uint32_t number = 0;
  if (reads_all(text, [&](nf::TextCursor& cursor) { return cursor.number(255, number); })) {
    return static_cast<std::int32_t>(number);
  }
  return config.error("protocol",
                      concat("'protocol' is '", text, "'; write any, icmp, tcp, udp, esp or a number from 0 to 255",
                             leading_zeros_advice(text)));
}

/// Sets what the key restricts, if anything.
Result<PortRange> read_ports(nf::Config& config, std::string_view key, Selector& selector) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string_or(key, "any"));
  if (text == "any") {
    return PortRange{};
  }
  if (text == "opaque") {
    selector.opaque_ports = true;
    return PortRange{};
  }
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const bool readable = reads_all(text, [&](nf::TextCursor& cursor) {
    if (!cursor.number(65535, first)) {
      return false;
    }
    last = first;
    return !cursor.accept('-') || cursor.number(65535, last);
  });
  if (!readable || first > last) {
    return config.error(
        key, concat("'", key, "' is '", text, "'; write a port from 0 to 65535, a range 1024-65535, opaque, or any",
                    leading_zeros_advice(text)));
  }
  selector.needs_ports = true;
  return PortRange{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

}  // namespace

Result<Selector> read_selector(nf::Config& config) {
  Selector selector;
  CATENA_ASSIGN_OR_RETURN(selector.source, read_prefix(config, "source"));
  CATENA_ASSIGN_OR_RETURN(selector.destination, read_prefix(config, "destination"));
  CATENA_ASSIGN_OR_RETURN(selector.protocol, read_protocol(config));
  CATENA_ASSIGN_OR_RETURN(selector.source_port, read_ports(config, "source_port", selector));
  CATENA_ASSIGN_OR_RETURN(selector.destination_port, read_ports(config, "destination_port", selector));
  if (selector.needs_ports && selector.opaque_ports) {
    return config.error("destination_port",
                        "one port is opaque and the other a range; an opaque port hides both: write opaque or any for "
                        "both, and the range in an association of its own");
  }
  const bool portless =
      selector.protocol >= 0 && selector.protocol != packet::kProtocolTcp && selector.protocol != packet::kProtocolUdp;
  if ((selector.needs_ports || selector.opaque_ports) && portless) {
    return config.error("protocol", "a selector with ports needs 'protocol: tcp', 'udp' or 'any'");
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return selector;
}

}  // namespace catena::ipsec
