// SPDX-License-Identifier: Apache-2.0
#include "stack/port/port_table.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

#include "stack/port/device_port.hpp"
#include "stack/port/packet_port.hpp"
#include "stack/port/ring_port.hpp"
#include "stack/port/tap_port.hpp"

namespace catena::stack {
namespace {

/// An open function of a port as one of the table.
template <auto Open>
Result<std::unique_ptr<Port>> open_as(std::string const& text) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Port> port, Open(text));
  return port;
}

constexpr std::array<PortKind, 5> kPortKinds = {{
    {"tap", "name of a TAP interface, made where it does not exist", &open_as<TapPort::open>},
    {"dev", "name of an interface without addresses of the kernel, such as one end of a veth pair",
     &open_as<PacketPort::open>},
    {"ring", "path of a socket: rings in memory shared with the process or thread that opens it, too",
     &open_as<RingPort::open>},
    {"memif",
     "path of a socket: shared memory with VPP, a chain or another DPDK program; it is the server, unless "
     "\",role=client\" follows",
     &open_as<DevicePort::open_memif>},
    {"dpdk", "any EAL device string", &open_as<DevicePort::open>},
}};

}  // namespace

std::span<PortKind const> port_kinds() { return kPortKinds; }

Result<std::unique_ptr<Port>> open_port(std::string_view key, std::string const& text) {
  const auto* const kind = std::ranges::find(kPortKinds, key, &PortKind::name);
  if (kind == kPortKinds.end()) {
    std::string names;
    for (PortKind const& known : kPortKinds) {
      names += concat(names.empty() ? "" : ", ", known.name);
    }
    return absl::InvalidArgumentError(concat("no port '", key, "'; ports are ", names));
  }
  return kind->open(text);
}

}  // namespace catena::stack
