// SPDX-License-Identifier: Apache-2.0
#include "stack/port/port_table.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

#include "stack/port/packet_port.hpp"
#include "stack/port/tap_port.hpp"

namespace catena::stack {
namespace {

template <typename Kind>
Result<std::unique_ptr<Port>> open_as(std::string const& text) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Port> port, Kind::open(text));
  return port;
}

constexpr std::array<PortKind, 2> kPortKinds = {{
    {"tap", "name of a TAP interface, made where it does not exist", &open_as<TapPort>},
    {"dev", "name of an interface without addresses of the kernel, such as one end of a veth pair",
     &open_as<PacketPort>},
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
