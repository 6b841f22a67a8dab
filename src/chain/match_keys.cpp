// SPDX-License-Identifier: Apache-2.0
#include "chain/match_keys.hpp"

#include "nf/integer.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace catena::chain {
namespace {

using std::string_view;

/// In the order of kProtocolNames.
constexpr std::array<std::uint8_t, kProtocolNames.size()> kProtocols{packet::kProtocolIcmp, packet::kProtocolTcp,
                                                                     packet::kProtocolUdp, packet::kProtocolEsp};

Result<std::optional<packet::Ipv4Prefix>> read_prefix(FileSection& section, string_view key) {
  if (!section.has(key)) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const packet::Ipv4Prefix prefix, section.config().ipv4_prefix(key));
  return prefix;
}

bool read_port(string_view text, std::uint16_t& port) {
  constexpr std::int64_t kMaxPort = 0xFFFF;
  const std::optional<std::int64_t> number = nf::parse_integer(text);
  port = static_cast<std::uint16_t>(number.value_or(0));
  return number && *number >= 0 && *number <= kMaxPort;
}

Result<std::optional<io::PortRange>> read_ports(FileSection& section, string_view key) {
  if (!section.has(key)) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const std::string text, section.text(key));
  const string_view all = text;
  const std::size_t dash = all.find('-');
  io::PortRange ports;
  if (!read_port(all.substr(0, dash), ports.first) ||
      !read_port(dash == string_view::npos ? all : all.substr(dash + 1), ports.last) || ports.last < ports.first) {
    return section.config().error(key,
                                  concat("'", key, "' is '", text, "'; write a port, as 53, or a range, as 1024-65535",
                                         leading_zeros_advice(text)));
  }
  return ports;
}

Result<std::optional<std::uint8_t>> read_protocol(FileSection& section) {
  if (!section.has("protocol")) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const std::string text, section.text("protocol"));
  if (const auto* const named = std::find(kProtocolNames.begin(), kProtocolNames.end(), text);
      named != kProtocolNames.end()) {
    return kProtocols[static_cast<std::size_t>(named - kProtocolNames.begin())];
  }
  CATENA_ASSIGN_OR_RETURN(const std::int64_t number, section.integer("protocol"));
  return static_cast<std::uint8_t>(number);
}

}  // namespace

Result<io::TrafficMatch> read_match(FileSection& section) {
  io::TrafficMatch match;
  if (section.has("vlan")) {
    CATENA_ASSIGN_OR_RETURN(const std::string text, section.text("vlan"));
    match.vlan = io::kUntagged;
    if (text != kUntaggedWord) {
      CATENA_ASSIGN_OR_RETURN(const std::int64_t vlan, section.integer("vlan"));
      match.vlan = static_cast<std::uint16_t>(vlan);
    }
  }
  CATENA_ASSIGN_OR_RETURN(match.source, read_prefix(section, "src"));
  CATENA_ASSIGN_OR_RETURN(match.destination, read_prefix(section, "dst"));
  CATENA_ASSIGN_OR_RETURN(match.protocol, read_protocol(section));
  CATENA_ASSIGN_OR_RETURN(match.source_ports, read_ports(section, "sport"));
  CATENA_ASSIGN_OR_RETURN(match.destination_ports, read_ports(section, "dport"));
  const bool has_ports = match.source_ports || match.destination_ports;
  if (has_ports && match.protocol && *match.protocol != packet::kProtocolTcp &&
      *match.protocol != packet::kProtocolUdp) {
    return section.config().error("protocol", "'protocol': only tcp and udp have ports; leave out sport and dport");
  }
  return match;
}

}  // namespace catena::chain
