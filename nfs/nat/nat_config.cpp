// SPDX-License-Identifier: Apache-2.0
#include "nat_config.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/ipv4.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/timeouts.hpp>

namespace catena::nat {
namespace {

constexpr std::string_view kInside = "inside";
constexpr std::string_view kExternal = "external";
constexpr std::string_view kPorts = "ports";
constexpr std::string_view kInsidePorts = "inside_ports";
constexpr std::int64_t kMaxEchoRate = 1'000'000;
constexpr std::int64_t kMaxSessionsPerMapping = 255;  // searched for each segment
constexpr std::int64_t kMaxTimeoutSeconds = 30 * 24 * 3600;

/// Walks a word of the configuration from its start.
nf::TextCursor cursor_at(std::string const& text, std::string const& file) {
  nf::TextCursor cursor(text, file);
  cursor.next_line();
  return cursor;
}

Result<std::vector<packet::Ipv4Prefix>> read_inside(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(std::vector<packet::Ipv4Prefix> prefixes, config.ipv4_prefixes(kInside));
  if (prefixes.empty() || prefixes.size() > kMaxInsidePrefixes) {
    return config.error(kInside,
                        concat("'inside' has ", prefixes.size(), " prefixes; write 1 to ", kMaxInsidePrefixes));
  }
  return prefixes;
}

bool is_unicast(std::uint32_t address) {
  const std::uint32_t first_byte = address >> 24;
  return first_byte != 0 && first_byte != 127 && first_byte < 224;
}

Result<AddressRange> read_range(nf::Config const& config, std::string const& text) {
  const std::string_view all = text;
  const std::size_t dash = all.find('-');
  const std::optional<std::uint32_t> first = parse_ipv4_address(all.substr(0, dash));
  const std::optional<std::uint32_t> last =
      dash == std::string_view::npos ? first : parse_ipv4_address(all.substr(dash + 1));
  if (!first || !last) {
    return config.error(kExternal, concat("'external' has '", text.substr(0, 40),
                                          "'; write an address or a range as 203.0.113.1-203.0.113.4"));
  }
  const AddressRange range{*first, *last};
  if (range.last < range.first || !is_unicast(range.first) || !is_unicast(range.last)) {
    return config.error(kExternal,
                        concat("'external' has ", text, "; write unicast addresses, the lower end of a range first"));
  }
  return range;
}

bool overlaps(AddressRange const& range, packet::Ipv4Prefix const& prefix) {
  return range.first <= (prefix.address | ~prefix.mask()) && prefix.address <= range.last;
}

Result<std::vector<AddressRange>> read_external(nf::Config& config, std::vector<packet::Ipv4Prefix> const& inside) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, config.strings(kExternal));
  std::vector<AddressRange> ranges;
  std::uint64_t addresses = 0;
  for (std::string const& text : texts) {
    CATENA_ASSIGN_OR_RETURN(const AddressRange range, read_range(config, text));
    for (packet::Ipv4Prefix const& prefix : inside) {
      if (overlaps(range, prefix)) {
        return config.error(kExternal, concat("'external' has ", text, ", which overlaps the inside prefix ",
                                              packet::to_string(prefix)));
      }
    }
    addresses += std::uint64_t{range.last} - range.first + 1;
    ranges.push_back(range);
  }
  if (addresses == 0 || addresses > kMaxExternalAddresses) {
    return config.error(kExternal,
                        concat("'external' has ", addresses, " addresses; write 1 to ", kMaxExternalAddresses));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](AddressRange const& a, AddressRange const& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first <= ranges[i - 1].last) {
      return config.error(kExternal, concat("'external' names ", to_string(packet::Ipv4Prefix{ranges[i].first, 32}),
                                            " twice; write each address once"));
    }
  }
  return ranges;
}

Result<PortRange> read_ports(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string_or(kPorts, "1024-65535"));
  nf::TextCursor cursor = cursor_at(text, config.file());
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const bool is_range = cursor.number(65535, first) && cursor.accept('-') && cursor.number(65535, last);
  if (!is_range || cursor.peek() != '\0' || first == 0 || last < first) {
    return config.error(
        kPorts, concat("'ports' is '", text.substr(0, 40), "'; write a range of ports from 1 to 65535 as 1024-65535",
                       leading_zeros_advice(text.substr(0, 40))));
  }
  return PortRange{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

Result<Timeouts> read_timeouts(nf::Config& config) {
  Timeouts timeouts;
  CATENA_RETURN_IF_ERROR(nf::read_timeouts(config,
                                           {{"udp", &timeouts.udp},
                                            {"tcp_established", &timeouts.tcp_established},
                                            {"tcp_opening", &timeouts.tcp_opening},
                                            {"tcp_closing", &timeouts.tcp_closing},
                                            {"icmp", &timeouts.icmp}},
                                           kMaxTimeoutSeconds));
  return timeouts;
}

/// A bit for each port; all bits where nothing is said.
Result<std::uint64_t> read_inside_ports(nf::Config& config) {
  if (!config.has(kInsidePorts)) {
    return ~std::uint64_t{0};
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, config.strings(kInsidePorts));
  std::uint64_t ports = 0;
  for (std::string const& text : texts) {
    nf::TextCursor cursor = cursor_at(text, config.file());
    std::uint32_t port = 0;
    if (!cursor.number(kMaxPorts - 1, port) || cursor.peek() != '\0') {
      return config.error(
          kInsidePorts, concat("'inside_ports' has '", text.substr(0, 40), "'; write numbers from 0 to ", kMaxPorts - 1,
                               ", in the order of the devices of rx", leading_zeros_advice(text.substr(0, 40))));
    }
    ports |= std::uint64_t{1} << port;
  }
  if (ports == 0) {
    return config.error(kInsidePorts, "'inside_ports' is empty: nothing could come from inside; name a port");
  }
  return ports;
}

Result<bool> read_drops_to_inside(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string what, config.one_of("inbound_to_inside", {"drop", "pass"}, "drop"));
  return std::string_view(what) == "drop";
}

}  // namespace

Result<NatConfig> read_nat_config(nf::Config& config) {
  NatConfig result;
  result.shard = config.shard();
  MappingTable::Settings& mappings = result.mappings;
  CATENA_ASSIGN_OR_RETURN(result.realms.inside, read_inside(config));
  CATENA_ASSIGN_OR_RETURN(result.realms.external, read_external(config, result.realms.inside));
  CATENA_ASSIGN_OR_RETURN(result.realms.inside_ports, read_inside_ports(config));
  CATENA_ASSIGN_OR_RETURN(mappings.ports, read_ports(config));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t most,
                          config.integer_or("max_mappings", mappings.max_mappings, 1, HashIndex::kMaxEntries));
  mappings.max_mappings = static_cast<std::uint32_t>(most);
  CATENA_ASSIGN_OR_RETURN(const std::int64_t half_open,
                          config.integer_or("max_half_open", std::max<std::int64_t>(1, most / 2), 1, most));
  mappings.max_half_open = static_cast<std::uint32_t>(half_open);
  const std::int64_t sessions_default = std::min<std::int64_t>(most + most / 4, HashIndex::kMaxEntries);
  CATENA_ASSIGN_OR_RETURN(const std::int64_t sessions,
                          config.integer_or("max_sessions", sessions_default, most, HashIndex::kMaxEntries));
  mappings.further_sessions = static_cast<std::uint32_t>(sessions - most);
  CATENA_ASSIGN_OR_RETURN(
      const std::int64_t per_mapping,
      config.integer_or("max_sessions_per_mapping", mappings.max_sessions_per_mapping, 1, kMaxSessionsPerMapping));
  mappings.max_sessions_per_mapping = static_cast<std::uint32_t>(per_mapping);
  CATENA_ASSIGN_OR_RETURN(result.drops_to_inside, read_drops_to_inside(config));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t echo_rate,
                          config.integer_or("echo_rate", result.echo_rate, 0, kMaxEchoRate));
  result.echo_rate = static_cast<std::uint32_t>(echo_rate);
  CATENA_ASSIGN_OR_RETURN(mappings.timeouts, read_timeouts(config));
  CATENA_RETURN_IF_ERROR(config.finish());
  for (AddressRange const& range : result.realms.external) {
    for (std::uint64_t address = range.first; address <= range.last; ++address) {
      mappings.external_addresses.push_back(static_cast<std::uint32_t>(address));
    }
  }
  return result;
}

}  // namespace catena::nat
