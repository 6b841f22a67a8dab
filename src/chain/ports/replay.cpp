// SPDX-License-Identifier: Apache-2.0
// `replay: {...}`: artificial traffic for benchmarks.
#include "chain/port_kind.hpp"
#include "chain/ports/traffic_keys.hpp"

#include <catena/packet/slot.hpp>

#include <array>
#include <utility>

namespace catena::chain {
namespace {

constexpr std::array kReplayTraffic{
    Key{.name = "packet",
        .kind = KeyKind::kIntegers,
        .help = "frame length in bytes, without FCS; the sizes of a list are used in turn",
        .fallback = "64",
        .minimum = io::kMinGeneratedBytes,
        .maximum = packet::kMaxFrameBytes,
        .most = io::kMaxReplaySizes,
        .into = into<&io::ReplayConfig::packet_bytes>},
    Key{.name = "flows",
        .kind = KeyKind::kInteger,
        .help = "number of flows, used in turn; times the number of sizes at most 262144",
        .fallback = "1024",
        .minimum = 1,
        .maximum = io::kMaxReplayTemplates,
        .into = into<&io::ReplayConfig::flows>},
    kRateKey<io::ReplayConfig>,
    kSeedKey<io::ReplayConfig>,
    kCountKey<io::ReplayConfig>,
};
constexpr std::array kReplayKeys{
    Key{.name = "replay",
        .kind = KeyKind::kSection,
        .help = "artificial traffic for benchmarks",
        .keys = kReplayTraffic},
};

Status parse_replay(FileSection& rx, PortConfig& port) {
  CATENA_ASSIGN_OR_RETURN(FileSection section, rx.section("replay"));
  io::ReplayConfig replay;
  CATENA_RETURN_IF_ERROR(section.read_into(replay));
  const auto most = static_cast<std::int64_t>(io::kMaxReplayTemplates / replay.packet_bytes.size());
  CATENA_RETURN_IF_ERROR(section.config().integer_or("flows", 1, 1, most).status());
  port.settings = std::move(replay);
  return absl::OkStatus();
}

Result<plan::PacketProfile> profile_of_replay(PortConfig const& rx) {
  std::vector<plan::FrameSize> sizes;
  for (const std::uint32_t bytes : rx.as<io::ReplayConfig>().packet_bytes) {
    sizes.push_back({bytes, 1.0});
  }
  return plan::PacketProfile::from_histogram(sizes);
}

Result<Sources> open_replay(SourceRequest const& request) {
  auto const& traffic = request.rx.as<io::ReplayConfig>();
  const auto parts = static_cast<std::uint32_t>(request.ports.size());
  return parts > 1 ? io::make_replays(traffic, parts, request.part_of) : one_source(io::make_replay(traffic));
}

}  // namespace

extern const PortKind kReplayPort;
const PortKind kReplayPort{
    .name = "replay",
    .argument = "{...}",
    .is_artificial = true,
    .describe = [](PortConfig const&) { return std::string("replay"); },
    .rx = {.keys = kReplayKeys, .parse = parse_replay, .profile = profile_of_replay, .open = open_replay},
};

}  // namespace catena::chain
