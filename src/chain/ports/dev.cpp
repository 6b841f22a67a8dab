// SPDX-License-Identifier: Apache-2.0
// `dev: INTERFACE`: ports that are interfaces of the kernel.
#include "chain/ports/devices.hpp"
#include "io/interface.hpp"

#include <catena/core/text.hpp>

#include <array>

namespace catena::chain {
namespace {

constexpr std::array kDevKeys{
    Key{.name = "dev",
        .kind = KeyKind::kTexts,
        .help = "an interface of the kernel, or several",
        .minimum = 1,
        .maximum = kMaxPortDevices},
};

/// Names of interfaces have neither; a device string would end or continue there.
bool is_interface_name(std::string_view name) {
  constexpr std::size_t kMaxName = 15;
  return !name.empty() && name.size() <= kMaxName && name.find_first_of(" ,/") == std::string_view::npos;
}

Status parse_dev(FileSection& section, PortConfig& port) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> interfaces, section.texts("dev"));
  for (std::string const& interface : interfaces) {
    if (!is_interface_name(interface)) {
      return section.config().error(
          "dev", concat("'dev' is '", interface, "'; write the name of an interface, as `ip link` lists them"));
    }
    port.devices.push_back(io::interface_device(interface));
  }
  return absl::OkStatus();
}

}  // namespace

extern const PortKind kDevPort;
const PortKind kDevPort{
    .name = "dev",
    .argument = "INTERFACE",
    .is_live = true,
    .take_argument =
        [](std::string_view argument, PortConfig& port) {
          port.devices = {io::interface_device(argument)};
          return is_interface_name(argument);
        },
    .describe = describe_devices,
    .rx = {.keys = kDevKeys, .parse = parse_dev, .open = take_device_sources},
    .tx = {.keys = kDevKeys, .parse = parse_dev, .open = take_device_sink},
};

}  // namespace catena::chain
