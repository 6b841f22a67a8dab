// SPDX-License-Identifier: Apache-2.0
// `pcap: FILE`: a capture that is read, or one that is written.
#include "chain/key_fields.hpp"
#include "chain/port_kind.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

namespace catena::chain {
namespace {

/// As settings: how often the file is read.
struct Loops {
  std::uint64_t count = 1;
};

constexpr std::array kPcapRxKeys{
    Key{.name = "pcap",
        .kind = KeyKind::kFile,
        .help = "a pcap or pcapng capture of Ethernet frames; -: standard input"},
    Key{.name = "loops",
        .kind = KeyKind::kInteger,
        .help = "with pcap: how often the file is read",
        .fallback = "1",
        .minimum = 1,
        .maximum = std::numeric_limits<std::int64_t>::max(),
        .into = into<&Loops::count>},
};
constexpr std::array kPcapTxKeys{
    Key{.name = "pcap", .kind = KeyKind::kFile, .help = "the pcap file to write; -: standard output"},
};

/// `is_input`: the file must exist.
Status read_capture_name(FileSection& section, bool is_input, PortConfig& port) {
  nf::Config& config = section.config();
  CATENA_ASSIGN_OR_RETURN(port.target, config.string("pcap"));
  if (port.target != io::kStandardStream) {
    CATENA_ASSIGN_OR_RETURN(port.target, is_input ? config.path("pcap") : config.output_path("pcap"));
  }
  return absl::OkStatus();
}

Status parse_pcap_rx(FileSection& section, PortConfig& port) {
  CATENA_RETURN_IF_ERROR(read_capture_name(section, true, port));
  Loops loops;
  CATENA_RETURN_IF_ERROR(section.read_into(loops));
  port.settings = loops;
  if (loops.count != 1 && io::is_stream(port.target)) {
    return section.config().error("loops", concat("'loops' is ", loops.count, ", but ", port.target,
                                                  " is no regular file and can be read only once"));
  }
  return absl::OkStatus();
}

Result<plan::PacketProfile> profile_of_frames(std::span<const io::SampledFrame> frames) {
  constexpr double kEthernetBytes = 14;
  constexpr double kVlanTagBytes = 4;
  constexpr double kIpv4Bytes = 20;
  constexpr double kTcpBytes = 20;
  std::map<std::uint32_t, double> sizes;
  plan::HeaderMix mix;
  double datagrams = 0;
  double segments = 0;
  for (io::SampledFrame const& frame : frames) {
    sizes[std::max(1U, frame.bytes)] += 1;  // captures may hold records without a byte
    packet::Layers const& layers = frame.layers;
    if ((layers.flags & packet::kIpv4) == 0) {
      continue;
    }
    datagrams += 1;
    mix.vlan_tags += (layers.l3 - kEthernetBytes) / kVlanTagBytes;
    mix.ipv4_option_bytes += layers.l4 - layers.l3 - kIpv4Bytes;
    if ((layers.flags & packet::kTcp) != 0) {
      segments += 1;
      mix.tcp_option_bytes += layers.payload - layers.l4 - kTcpBytes;
    }
  }
  if (datagrams > 0) {
    mix.vlan_tags /= datagrams;
    mix.ipv4_option_bytes /= datagrams;
    mix.tcp_share = segments / datagrams;
    mix.tcp_option_bytes /= std::max(1.0, segments);
  }
  std::vector<plan::FrameSize> histogram;
  for (auto const& [bytes, count] : sizes) {
    histogram.push_back({bytes, count});
  }
  return plan::PacketProfile::from_histogram(histogram, mix);
}

Result<plan::PacketProfile> profile_of_capture(PortConfig const& rx) {
  constexpr std::size_t kSampledFrames = 10'000;
  CATENA_ASSIGN_OR_RETURN(const auto frames, io::sample_capture(rx.target, kSampledFrames));
  return frames.empty() ? plan::PacketProfile::imix() : profile_of_frames(frames);
}

/// A stream can be read only once, which is the run's.
Status verify_pcap(PortConfig const& rx) {
  return io::is_stream(rx.target) ? absl::OkStatus() : io::verify_capture(rx.target);
}

Result<Sources> open_pcap(SourceRequest const& request) {
  return one_source(io::open_pcap_source(request.rx.target, request.rx.as<Loops>().count, request.give_up));
}

}  // namespace

extern const PortKind kPcapPort;
const PortKind kPcapPort{
    .name = "pcap",
    .argument = "FILE",
    .names_file = true,
    .take_argument =
        [](std::string_view argument, PortConfig& port) {
          port.target = argument;
          port.settings = Loops();
          return true;
        },
    .describe = [](PortConfig const& port) { return concat("pcap ", port.target); },
    .rx = {.keys = kPcapRxKeys,
           .elsewhere = "write `count` for artificial traffic",
           .note = "- is standard input",
           .parse = parse_pcap_rx,
           .profile = profile_of_capture,
           .verify = verify_pcap,
           .open = open_pcap},
    .tx = {.keys = kPcapTxKeys,
           .note = "- is standard output",
           .parse = [](FileSection& section, PortConfig& port) { return read_capture_name(section, false, port); },
           .write = io::make_pcap_sink},
};

}  // namespace catena::chain
