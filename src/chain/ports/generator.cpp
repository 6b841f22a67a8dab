// SPDX-License-Identifier: Apache-2.0
// `generator: {...}`: artificial traffic.
#include "chain/ports/generator.hpp"

#include "chain/port_kind.hpp"
#include "chain/ports/traffic_keys.hpp"

#include <catena/packet/slot.hpp>

#include <array>
#include <utility>

namespace catena::chain {
namespace {

constexpr std::array<std::string_view, 1> kImix{"imix"};
constexpr std::array kGeneratorTraffic{
    Key{.name = "packet",
        .kind = KeyKind::kInteger,
        .help = "frame length in bytes, without FCS; imix: 64, 594 and 1518 bytes as 7 : 4 : 1",
        .fallback = "64",
        .minimum = io::kMinGeneratedBytes,
        .maximum = packet::kMaxFrameBytes,
        .words = kImix,
        .into = into<&io::GeneratorConfig::packet_bytes>},
    Key{.name = "flows",
        .kind = KeyKind::kInteger,
        .help = "number of flows, used in turn",
        .fallback = "1024",
        .minimum = 1,
        .maximum = io::kMaxGeneratedFlows,
        .into = into<&io::GeneratorConfig::flows>},
    kRateKey<io::GeneratorConfig>,
    kSeedKey<io::GeneratorConfig>,
    kCountKey<io::GeneratorConfig>,
};
constexpr std::array kGeneratorKeys{
    Key{.name = "generator", .kind = KeyKind::kSection, .help = "artificial traffic", .keys = kGeneratorTraffic},
};

Status parse_generator(FileSection& rx, PortConfig& port) {
  CATENA_ASSIGN_OR_RETURN(FileSection section, rx.section("generator"));
  io::GeneratorConfig generator;
  CATENA_RETURN_IF_ERROR(section.read_into(generator));
  port.settings = generator;
  return absl::OkStatus();
}

Result<plan::PacketProfile> profile_of_generator(PortConfig const& rx) {
  const std::uint32_t bytes = rx.as<io::GeneratorConfig>().packet_bytes;
  return bytes == 0 ? plan::PacketProfile::imix() : plan::PacketProfile::fixed(bytes);
}

Result<Sources> open_generator(SourceRequest const& request) {
  auto const& traffic = request.rx.as<io::GeneratorConfig>();
  const auto parts = static_cast<std::uint32_t>(request.ports.size());
  return parts > 1 ? io::make_generators(traffic, parts, request.part_of) : one_source(io::make_generator(traffic));
}

}  // namespace

extern const PortKind kGeneratorPort;
const PortKind kGeneratorPort{
    .name = "generator",
    .argument = "{...}",
    .is_artificial = true,
    .take_argument =
        [](std::string_view, PortConfig& port) {
          port.settings = io::GeneratorConfig();
          return true;
        },
    .describe = [](PortConfig const&) { return std::string("generator"); },
    .rx = {.keys = kGeneratorKeys, .parse = parse_generator, .profile = profile_of_generator, .open = open_generator},
};

PortConfig generated(io::GeneratorConfig const& traffic) {
  PortConfig port;
  port.kind = &kGeneratorPort;
  port.settings = traffic;
  return port;
}

}  // namespace catena::chain
