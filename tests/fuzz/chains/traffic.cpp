// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/traffic.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>
#include <catena/packet/testing/frames.hpp>

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <memory>

namespace catena::fuzz {
namespace {

using packet::testing::kL3;
using packet::testing::kL4;
using packet::testing::with_header_checksum;

constexpr std::uint64_t kFirstStamp = 1'700'000'000'000'000'000;

struct Flow {
  std::uint8_t protocol;
  std::uint32_t source;
  std::uint32_t destination;
  std::uint16_t source_port;
  std::uint16_t destination_port;
};

/// Hosts that the tables in tests/data/chain and those of the fuzzer speak of: inside and outside of NATs, services and
/// their backends, routes, ends of tunnels.
constexpr std::array<std::uint32_t, 16> kAddresses{
    0x0A000001, 0x0A000006, 0x0A00008A, 0x0A010005, 0x0A0200FE, 0x64400001, 0xAC100A01, 0xAC10D254,
    0xCB007101, 0xCB007102, 0xC6336401, 0xC0A80001, 0x08080808, 0xD4C7CA09, 0x0AC80001, 0xFFFFFFFF};
constexpr std::array<std::uint16_t, 12> kPorts{0, 53, 80, 443, 1024, 1500, 2047, 4500, 8080, 40000, 40001, 65535};
constexpr std::array<std::uint8_t, 6> kOtherProtocols{0, 2, 47, 51, 132, 255};

/// What the rules of the NIDS look for, and what makes many matches.
constexpr std::array<const char*, 10> kTexts{"GET /index HTTP/1.1\r\nHost: a\r\n",
                                             "GET / HTTP/1.0\r\nCookie: x\r\n",
                                             "content-encoding: gzip",
                                             "image/gif",
                                             "abcABCabc",
                                             "eeeeeeeeeeeeeeeeeeeeeee",
                                             "needle",
                                             "\x03"
                                             "com",
                                             "Host: HOST: host: ",
                                             "xyzzy"};

Flow random_flow(Random& random) {
  Flow flow{};
  flow.protocol = random.chance(50) ? packet::kProtocolTcp : packet::kProtocolUdp;
  flow.source = random.chance(80) ? random.pick(kAddresses) : static_cast<std::uint32_t>(random.bits());
  flow.destination = random.chance(80) ? random.pick(kAddresses) : static_cast<std::uint32_t>(random.bits());
  flow.source_port = random.chance(50) ? random.pick(kPorts) : static_cast<std::uint16_t>(random.between(1024, 65535));
  flow.destination_port = random.chance(70) ? random.pick(kPorts) : static_cast<std::uint16_t>(random.bits());
  return flow;
}

std::string random_payload(Random& random, std::size_t bytes) {
  std::string text;
  text.reserve(bytes + 64);
  while (text.size() < bytes) {
    switch (random.below(4)) {
      case 0:
        text += random.pick(kTexts);
        break;
      case 1:
        text.append(random.below(24), static_cast<char>(random.chance(40) ? 0 : random.below(256)));
        break;
      default:
        for (std::uint32_t i = random.below(64); i > 0; --i) {
          text += static_cast<char>(random.chance(50) ? 'a' + random.below(26) : random.below(256));
        }
    }
  }
  text.resize(bytes);
  return text;
}

/// How long the frames of a capture are.
enum class Sizes { kAny, kSmall, kFull };

std::size_t random_payload_bytes(Random& random, Sizes sizes, std::size_t headers) {
  const std::size_t most = packet::kMaxFrameBytes - headers;
  if (sizes == Sizes::kFull) {
    return most;
  }
  if (sizes == Sizes::kSmall) {
    return random.below(128);
  }
  switch (random.below(6)) {
    case 0:
      return random.below(20);
    case 1:
      return 1514 - headers;
    case 2:
      return most - random.below(random.chance(50) ? 2 : 40);
    default:
      return random.below(most + 1);
  }
}

/// An ICMP error (RFC 792) from `sender` about `datagram`, to its source, that quotes `quoted` bytes after its header.
Frame make_error(Random& random, std::uint32_t sender, Frame const& datagram, std::size_t quoted) {
  constexpr std::array<std::uint8_t, 5> kTypes{3, 4, 5, 11, 12};
  const std::uint8_t type = random.pick(kTypes);
  const auto code = static_cast<std::uint8_t>(random.below(5));
  const auto rest = static_cast<std::uint16_t>(random.bits());
  return packet::testing::make_icmp(type, code, sender, packet::testing::source_of(datagram), rest,
                                    packet::testing::quote_of(datagram, quoted));
}

/// The datagram in fragments of about `bytes` bytes (RFC 791, section 3.2).
std::vector<Frame> split(Frame const& frame, std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(8, bytes / 8 * 8);
  std::vector<Frame> fragments;
  for (std::size_t at = 0; kL4 + at < frame.size(); at += step) {
    fragments.push_back(packet::testing::fragment_of(frame, at, at + step));
  }
  return fragments;
}

Frame make_other(Random& random) {
  constexpr std::array<std::uint16_t, 6> kTypes{0x86DD, 0x0806, 0x88CC, 0x8847, 0x0026, 0x0800};
  Frame frame(random.between(14, 200));
  for (std::uint8_t& byte : frame) {
    byte = static_cast<std::uint8_t>(random.bits());
  }
  if (random.chance(20)) {  // spanning tree, link layer discovery and their like
    const std::array<std::uint8_t, 6> group{0x01, 0x80, 0xC2, 0x00, 0x00, static_cast<std::uint8_t>(random.below(16))};
    std::copy(group.begin(), group.end(), frame.begin());
  }
  packet::store_be16(&frame[12], random.pick(kTypes));
  return frame;
}

class TrafficMaker {
 public:
  TrafficMaker(Random& random, Traffic traffic) : random_(&random), traffic_(traffic) {
    for (std::uint32_t i = random.between(1, 40); i > 0; --i) {
      flows_.push_back(random_flow(random));
    }
    if (traffic == Traffic::kFull) {
      sizes_ = Sizes::kFull;
      return;
    }
    const std::uint32_t kind = random.below(100);
    sizes_ = kind < 25 ? Sizes::kFull : kind < 35 ? Sizes::kSmall : Sizes::kAny;
    oddities_ =
        sizes_ == Sizes::kFull && random.chance(70) ? 0 : random.pick(std::array<std::uint32_t, 4>{0, 5, 20, 50});
  }

  std::vector<CapturedFrame> make() {
    Random& random = *random_;
    const std::uint32_t most = random.chance(80) ? 700 : 3000;
    const std::uint32_t count = traffic_ == Traffic::kFull ? random.between(100, 500) : random.between(1, most);
    std::uint64_t stamp = kFirstStamp;
    while (frames_.size() < count) {
      const std::size_t before = frames_.size();
      add();
      for (std::size_t i = before; i < frames_.size(); ++i) {
        stamp += 2 * random.between(1, random.chance(99) ? 500'000 : 2'000'000'000);
        frames_[i].original_bytes = static_cast<std::uint32_t>(frames_[i].bytes.size());
        // some before those that came earlier; no two are the same: these are odd
        frames_[i].stamp_ns = random.chance(1) ? stamp - 5'000'000'001 : stamp;
      }
    }
    return std::move(frames_);
  }

 private:
  void add(Frame frame) { frames_.push_back({std::move(frame), 0, 0}); }

  Frame plain(Flow const& flow, bool reversed) {
    const std::size_t headers =
        kL4 + (flow.protocol == packet::kProtocolTcp ? packet::kTcpMinBytes : packet::kUdpBytes);
    const std::string payload = random_payload(*random_, random_payload_bytes(*random_, sizes_, headers));
    const auto ttl = static_cast<std::uint8_t>(random_->chance(95) ? 64 : random_->below(3));
    Frame frame = reversed ? packet::testing::make_frame(flow.protocol, flow.destination, flow.source,
                                                         flow.destination_port, flow.source_port, payload, ttl)
                           : packet::testing::make_frame(flow.protocol, flow.source, flow.destination, flow.source_port,
                                                         flow.destination_port, payload, ttl);
    if (random_->chance(30)) {
      frame =
          with_header_checksum(packet::testing::with_tos(std::move(frame), static_cast<std::uint8_t>(random_->bits())));
    }
    if (flow.protocol == packet::kProtocolTcp && random_->chance(30)) {
      frame[kL4 + 13] = static_cast<std::uint8_t>(random_->bits());  // flags; the checksum is wrong then
    }
    return frame;
  }

  void add() {
    Random& random = *random_;
    Flow const& flow = random.pick(flows_);
    Frame frame = plain(flow, random.chance(25));
    if (!random.chance(oddities_)) {
      return add(std::move(frame));
    }
    switch (random.below(9)) {
      case 0:
        frame = packet::testing::with_vlan(std::move(frame), random.between(1, 3));
        if (frame.size() > packet::kMaxFrameBytes) {
          frame.resize(packet::kMaxFrameBytes);
        }
        return add(std::move(frame));
      case 1:
        frame = packet::testing::with_options(std::move(frame), random.between(1, 10));
        frame.resize(std::min<std::size_t>(frame.size(), packet::kMaxFrameBytes));
        return add(std::move(frame));
      case 2:
        for (Frame& fragment : split(frame, random.between(8, 600))) {
          add(std::move(fragment));
        }
        return;
      case 3:
        return add(packet::testing::with_fragment(std::move(frame), static_cast<std::uint16_t>(random.bits())));
      case 4:
        return add(make_error(random, random.pick(kAddresses), frame, random.chance(60) ? 8 : random.below(200)));
      case 5:
        return add(packet::testing::make_echo(
            flow.source, flow.destination, static_cast<std::uint16_t>(random.below(4)),
            static_cast<std::uint16_t>(random.bits()), random_payload(random, random.below(200))));
      case 6:
        frame[kL3 + 9] = random.pick(kOtherProtocols);
        return add(with_header_checksum(std::move(frame)));
      case 7:
        frame[kL3 + 9] = packet::kProtocolEsp;
        packet::store_be32(&frame[kL4], random.chance(70) ? random.between(4096, 4098) : 7);
        return add(with_header_checksum(std::move(frame)));
      default:
        return add(make_other(random));
    }
  }

  Random* random_;
  Traffic traffic_;
  std::vector<Flow> flows_;
  Sizes sizes_ = Sizes::kAny;
  std::uint32_t oddities_ = 0;  ///< percent of the frames
  std::vector<CapturedFrame> frames_;
};

/// Overwrites a length, or any byte of the headers.
void lie(Random& random, Frame& frame) {
  constexpr std::array<std::size_t, 6> kPlaces{kL3, kL3 + 2, kL3 + 3, kL3 + 6, kL4 + 4, kL4 + 12};
  const std::size_t at = random.chance(60) ? random.pick(kPlaces) : random.below(80);
  if (at < frame.size()) {
    frame[at] = static_cast<std::uint8_t>(random.bits());
  }
}

}  // namespace

std::vector<CapturedFrame> make_traffic(Random& random, Traffic traffic) {
  std::vector<CapturedFrame> frames = TrafficMaker(random, traffic).make();
  if (traffic == Traffic::kAny && random.chance(50)) {
    spoil(random, frames);
  }
  return frames;
}

void spoil(Random& random, std::vector<CapturedFrame>& frames) {
  const std::uint32_t percent = random.between(1, 15);
  for (CapturedFrame& frame : frames) {
    if (!random.chance(percent)) {
      continue;
    }
    switch (random.below(4)) {
      case 0:
        frame.bytes.resize(random.chance(50) ? random.below(80) : random.below(frame.bytes.size() + 1));
        break;
      case 1:  // padding after the datagram
        frame.bytes.resize(std::min<std::size_t>(frame.bytes.size() + random.below(64), packet::kMaxFrameBytes));
        frame.original_bytes = static_cast<std::uint32_t>(frame.bytes.size());
        break;
      default:
        lie(random, frame.bytes);
    }
    frame.original_bytes = std::max(frame.original_bytes, static_cast<std::uint32_t>(frame.bytes.size()));
  }
}

Status write_frames(std::string const& path, std::vector<CapturedFrame> const& frames) {
  constexpr int kSnapBytes = 65535;
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> dead(
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapBytes, PCAP_TSTAMP_PRECISION_NANO), pcap_close);
  const std::unique_ptr<pcap_dumper_t, decltype(&pcap_dump_close)> dump(pcap_dump_open(dead.get(), path.c_str()),
                                                                        pcap_dump_close);
  if (!dump) {
    return absl::NotFoundError(pcap_geterr(dead.get()));
  }
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  for (CapturedFrame const& frame : frames) {
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<time_t>(frame.stamp_ns / kNsPerSecond);
    header.ts.tv_usec = static_cast<suseconds_t>(frame.stamp_ns % kNsPerSecond);
    header.caplen = static_cast<bpf_u_int32>(frame.bytes.size());
    header.len = frame.original_bytes;
    pcap_dump(reinterpret_cast<u_char*>(dump.get()), &header, frame.bytes.data());
  }
  return absl::OkStatus();
}

Result<std::vector<CapturedFrame>> read_frames(std::string const& path) {
  std::array<char, PCAP_ERRBUF_SIZE> message{};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, message.data()), pcap_close);
  if (!file) {
    return absl::NotFoundError(message.data());
  }
  std::vector<CapturedFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(file.get(), &header, &bytes) == 1) {
    frames.push_back({Frame(bytes, bytes + header->caplen), header->len,
                      static_cast<std::uint64_t>(header->ts.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(header->ts.tv_usec)});
  }
  return frames;
}

}  // namespace catena::fuzz
