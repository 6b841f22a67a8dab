// SPDX-License-Identifier: Apache-2.0
#include "next_hops.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>

#include <string_view>

namespace catena::router {
namespace {

/// "10.9.0.1/24": a host's address in its network.
Result<PortAddress> read_address(nf::Config& entry, PortTable const& others) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, entry.string("address"));
  packet::Ipv4Prefix prefix;
  nf::TextCursor cursor(text, "");
  const bool is_prefix = text.find('/') != std::string::npos && cursor.next_line() && cursor.prefix(prefix);
  cursor.skip_blanks();
  if (!is_prefix || !cursor.at_end()) {
    return entry.error(
        "address",
        concat("'address' is '", text, "'; write the router's address and the length of its network, as 10.9.0.1/24"));
  }
  const std::uint32_t hosts = ~prefix.mask();
  const bool is_end = prefix.length <= 30 && ((prefix.address & hosts) == 0 || (prefix.address & hosts) == hosts);
  const std::uint32_t first_byte = prefix.address >> 24;
  if (is_end || first_byte == 0 || first_byte == 127 || first_byte >= 224 || prefix.length == 0) {
    return entry.error("address", concat("'address' is '", text, "', which no host can have"));
  }
  for (auto const& [port, other] : others) {
    if (other.address.address == prefix.address) {
      return entry.error("address", concat("'address' is '", text, "', which port ", port, " has already"));
    }
  }
  return PortAddress{prefix.address, prefix.length};
}

}  // namespace

Result<PortTable> read_port_table(nf::Config& config) {
  PortTable table;
  if (!config.has("ports")) {
    return table;
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::Config> entries, config.sections("ports"));
  for (nf::Config& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t port, entry.integer("port", 0, lpm::kMaxPort));
    PortEntry macs{};
    CATENA_ASSIGN_OR_RETURN(macs.own, entry.mac_address("mac"));
    CATENA_ASSIGN_OR_RETURN(macs.next_hop, entry.mac_address("next_hop_mac"));
    if (entry.has("address")) {
      CATENA_ASSIGN_OR_RETURN(macs.address, read_address(entry, table));
    }
    if ((macs.own[0] & 1) != 0) {
      return entry.error("mac",
                         "'mac' is a group address; a frame's source must be a single station: "
                         "write an address whose first byte is even");
    }
    CATENA_RETURN_IF_ERROR(entry.finish());
    if (!table.emplace(static_cast<std::uint16_t>(port), macs).second) {
      return entry.error("port", concat("port ", port, " has an entry already; write each port once"));
    }
  }
  return table;
}

}  // namespace catena::router
