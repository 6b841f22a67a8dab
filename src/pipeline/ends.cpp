// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ends.hpp"

#include "chain/port_kind.hpp"
#include "io/eal/eal.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace catena::runtime {

using chain::PortConfig;

namespace {

/// "0000:03:00.0" or "03:00.0", with or without parameters after it.
bool is_pci_address(std::string const& device) {
  const std::string head = device.substr(0, device.find(','));
  return std::count(head.begin(), head.end(), ':') >= 1 && head.find('.') != std::string::npos &&
         head.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

Result<chain::Sources> open_sources(PortConfig const& rx, std::span<io::DpdkPort> ports, ShardMap& shard_map,
                                    std::stop_token const& give_up) {
  if (!rx.kind->is_for_rx()) {
    return absl::InvalidArgumentError(concat("rx cannot be ", rx.kind->name));
  }
  const io::PartOf part_of = [&shard_map](packet::Packet const& packet) { return shard_map.shard_of(packet); };
  return rx.kind->rx.open({rx, ports, part_of, give_up});
}

/// Null for a kind that writes a file.
std::unique_ptr<io::Sink> open_sink(PortConfig const& tx, io::DpdkPort& port) {
  return tx.kind->tx.open == nullptr ? nullptr : tx.kind->tx.open(tx, port);
}

}  // namespace

Status start_eal_for(PortConfig const& rx, PortConfig const& tx) {
  std::vector<std::string> arguments;
  for (PortConfig const* port : {&rx, &tx}) {
    for (std::string const& device : port->devices) {
      if (!is_pci_address(device)) {
        continue;
      }
      if (arguments.empty()) {
        arguments.emplace_back("--in-memory");
      }
      if (std::string allow = concat("--allow=", device);
          std::find(arguments.begin(), arguments.end(), allow) == arguments.end()) {
        arguments.push_back(std::move(allow));
      }
    }
  }
  return arguments.empty() ? absl::OkStatus() : eal::start(arguments);
}

Result<bool> may_divide_ends(chain::ChainConfig const& config, RunOptions const& options, bool by_packet,
                             std::uint32_t parts) {
  if (config.rx.is_shared || config.tx.is_shared) {
    return false;
  }
  if (config.rx.kind->is_live && by_packet && chain::hides_order(config, options)) {
    return io::can_divide(config.rx.devices, config.tx.devices, parts);
  }
  return chain::may_divide_traffic(config, options);
}

Result<Ends> open_ends(chain::ChainConfig const& config, RunOptions const& options,
                       std::span<const std::shared_ptr<memory::PacketPool>> pools, ShardMap shard_map) {
  const std::vector<std::string> none;
  std::vector<memory::PacketPool*> of;
  for (auto const& pool : pools) {
    of.push_back(pool.get());
  }
  io::SharedEnds shared{nullptr, config.rx.is_shared, config.tx.is_shared, config.name, config.rx.matches};
  if (shared.rx || shared.tx) {
    shared.switches = options.switches != nullptr ? options.switches : io::make_shared_port_registry();
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<io::DpdkPort> ports,
                          io::open_dpdk_ports(options.make_source ? none : config.rx.devices,
                                              options.make_sink ? none : config.tx.devices, of, shared));
  Ends ends;
  if (options.make_source) {
    CATENA_ASSIGN_OR_RETURN(ends.sources.emplace_back(), options.make_source());
  } else {
    CATENA_ASSIGN_OR_RETURN(ends.sources, open_sources(config.rx, ports, shard_map, options.processes.give_up));
  }
  if (options.make_sink) {
    CATENA_ASSIGN_OR_RETURN(ends.sinks.emplace_back(), options.make_sink());
  } else {
    std::transform(ports.begin(), ports.end(), std::back_inserter(ends.sinks),
                   [&config](io::DpdkPort& port) { return open_sink(config.tx, port); });
  }
  return ends;
}

}  // namespace catena::runtime
