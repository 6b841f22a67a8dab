// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/port_kind.hpp"

/// Ports that are devices: all devices of rx and tx are opened together, by io::open_dpdk_ports(), since a device in
/// both is opened once. For kinds that differ in how a file names a device.
namespace catena::chain {

/// Maximum number of devices of rx, and of tx.
inline constexpr std::int64_t kMaxPortDevices = 32;

/// "dpdk net_tap0 + net_null1"
std::string describe_devices(PortConfig const& port);
/// The sources and the sink of opened devices.
Result<Sources> take_device_sources(SourceRequest const& request);
std::unique_ptr<io::Sink> take_device_sink(PortConfig const& tx, io::DpdkPort& port);

}  // namespace catena::chain
