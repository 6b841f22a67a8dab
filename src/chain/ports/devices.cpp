// SPDX-License-Identifier: Apache-2.0
#include "chain/ports/devices.hpp"

#include <fmt/ranges.h>

#include <utility>

namespace catena::chain {

std::string describe_devices(PortConfig const& port) { return fmt::format("dpdk {}", fmt::join(port.devices, " + ")); }

Result<Sources> take_device_sources(SourceRequest const& request) {
  Sources sources;
  for (io::DpdkPort& port : request.ports) {
    sources.push_back(std::move(port.source));
  }
  return sources;
}

std::unique_ptr<io::Sink> take_device_sink(PortConfig const& /*tx*/, io::DpdkPort& port) {
  return std::move(port.sink);
}

}  // namespace catena::chain
