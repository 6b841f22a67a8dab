// SPDX-License-Identifier: Apache-2.0
#include "runtime/ends.hpp"

#include "eal/eal.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace catena::runtime {

using chain::PortConfig;
using chain::PortKind;

namespace {

/// "0000:03:00.0" or "03:00.0", with or without parameters after it.
bool is_pci_address(std::string const& device) {
  const std::string head = device.substr(0, device.find(','));
  return std::count(head.begin(), head.end(), ':') >= 1 && head.find('.') != std::string::npos &&
         head.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

Result<std::unique_ptr<io::Source>> open_source(PortConfig const& rx, io::DpdkPort& ports) {
  switch (rx.kind) {
    case PortKind::kPcap:
      return io::open_pcap_source(rx.target, rx.loops);
    case PortKind::kGenerator:
      return io::make_generator(rx.generator);
    case PortKind::kReplay:
      return io::make_replay(rx.replay);
    case PortKind::kDpdk:
      return std::move(ports.source);
    case PortKind::kNull:
      break;
  }
  return absl::InvalidArgumentError("rx cannot be null");
}

std::unique_ptr<io::Sink> open_sink(PortConfig const& tx, io::DpdkPort& ports) {
  switch (tx.kind) {
    case PortKind::kDpdk:
      return std::move(ports.sink);
    case PortKind::kPcap:
      return nullptr;
    default:
      return io::make_null_sink();
  }
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

Result<Ends> open_ends(chain::ChainConfig const& config, chain::RunOptions const& options, memory::PacketPool& pool) {
  const std::vector<std::string> none;
  CATENA_ASSIGN_OR_RETURN(io::DpdkPort ports, io::open_dpdk_ports(options.make_source ? none : config.rx.devices,
                                                                  options.make_sink ? none : config.tx.devices, pool));
  Ends ends;
  CATENA_ASSIGN_OR_RETURN(ends.source, options.make_source ? options.make_source() : open_source(config.rx, ports));
  if (options.make_sink) {
    CATENA_ASSIGN_OR_RETURN(ends.sink, options.make_sink());
  } else {
    ends.sink = open_sink(config.tx, ports);
  }
  return ends;
}

std::string describe(PortConfig const& port) {
  switch (port.kind) {
    case PortKind::kPcap:
      return concat("pcap ", port.target);
    case PortKind::kDpdk:
      return fmt::format("dpdk {}", fmt::join(port.devices, " + "));
    case PortKind::kGenerator:
      return "generator";
    case PortKind::kReplay:
      return "replay";
    case PortKind::kNull:
      return "null";
  }
  return {};
}

}  // namespace catena::runtime
