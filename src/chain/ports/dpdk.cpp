// SPDX-License-Identifier: Apache-2.0
// `dpdk: DEVICE`: ports named by DPDK device strings.
#include "chain/key_fields.hpp"
#include "chain/ports/devices.hpp"

#include <array>

namespace catena::chain {
namespace {

constexpr std::array kDpdkKeys{
    Key{.name = "dpdk",
        .kind = KeyKind::kTexts,
        .help = "a DPDK device string, or several",
        .minimum = 1,
        .maximum = kMaxPortDevices,
        .into = into<&PortConfig::devices>},
};

Status parse_dpdk(FileSection& section, PortConfig& port) { return section.read_into(port); }

}  // namespace

extern const PortKind kDpdkPort;
const PortKind kDpdkPort{
    .name = "dpdk",
    .argument = "DEVICE",
    .is_live = true,
    .take_argument =
        [](std::string_view argument, PortConfig& port) {
          port.devices = {std::string(argument)};
          return true;
        },
    .describe = describe_devices,
    .rx = {.keys = kDpdkKeys, .parse = parse_dpdk, .open = take_device_sources},
    .tx = {.keys = kDpdkKeys, .parse = parse_dpdk, .open = take_device_sink},
};

}  // namespace catena::chain
