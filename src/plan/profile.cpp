// SPDX-License-Identifier: Apache-2.0
#include "plan/profile.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace catena::plan {
namespace {

constexpr std::uint32_t kMaxFrameBytes = 65535;
constexpr double kEthernetBytes = 14;
constexpr double kVlanTagBytes = 4;
constexpr double kIpv4Bytes = 20;
constexpr double kTcpBytes = 20;
constexpr double kUdpBytes = 8;

// A launch's own buffer: frames begin 2 bytes after a multiple of 16, so that IPv4 addresses are aligned.
constexpr double kFrameShift = 2;
constexpr double kFrameAlign = 16;

double round_up(double bytes) { return std::ceil(bytes / kFrameAlign) * kFrameAlign; }

double header_bytes_of(HeaderMix const& mix) {
  return kEthernetBytes + kVlanTagBytes * mix.vlan_tags + kIpv4Bytes + mix.ipv4_option_bytes +
         mix.tcp_share * (kTcpBytes + mix.tcp_option_bytes) + (1 - mix.tcp_share) * kUdpBytes;
}

}  // namespace

PacketProfile::PacketProfile(std::vector<FrameSize> sizes, HeaderMix const& headers)
    : sizes_(std::move(sizes)), header_bytes_(header_bytes_of(headers)) {}

PacketProfile PacketProfile::fixed(std::uint32_t bytes, HeaderMix const& headers) {
  return {{{std::clamp(bytes, 1U, kMaxFrameBytes), 1.0}}, headers};
}

PacketProfile PacketProfile::imix(HeaderMix const& headers) {
  return {{{60, 7.0 / 12}, {590, 4.0 / 12}, {1514, 1.0 / 12}}, headers};
}

Result<PacketProfile> PacketProfile::from_histogram(std::span<const FrameSize> sizes, HeaderMix const& headers) {
  double total = 0;
  for (FrameSize const& size : sizes) {
    if (size.bytes == 0 || size.bytes > kMaxFrameBytes) {
      return absl::InvalidArgumentError(
          concat("a frame size of ", size.bytes, " bytes; frames have 1 to ", kMaxFrameBytes));
    }
    if (!(size.share >= 0) || !std::isfinite(size.share)) {
      return absl::InvalidArgumentError(
          concat("frames of ", size.bytes, " bytes have a share of ", size.share, "; it must be 0 or more"));
    }
    total += size.share;
  }
  if (!(total > 0)) {
    return absl::InvalidArgumentError("no frame size has a share of the traffic");
  }
  std::vector<FrameSize> used;
  for (FrameSize const& size : sizes) {
    if (size.share > 0) {
      used.push_back({size.bytes, size.share / total});
    }
  }
  return PacketProfile(std::move(used), headers);
}

double PacketProfile::average_bytes() const {
  double sum = 0;
  for (FrameSize const& size : sizes_) {
    sum += size.share * size.bytes;
  }
  return sum;
}

std::uint32_t PacketProfile::longest_bytes() const {
  return std::max_element(sizes_.begin(), sizes_.end(),
                          [](FrameSize const& a, FrameSize const& b) { return a.bytes < b.bytes; })
      ->bytes;
}

Body body_of(PacketProfile const& profile, double grown, std::uint32_t growth) {
  Body body{};
  for (FrameSize const& size : profile.sizes()) {
    const double frame = std::max(0.0, size.bytes + grown);
    const double payload = std::max(0.0, frame - profile.header_bytes());
    body.frame += size.share * frame;
    body.payload += size.share * payload;
    body.staged_frame += size.share * round_up(growth + kFrameShift + frame);
    body.staged_payload += size.share * round_up(growth + payload);
    body.longest_frame = std::max(body.longest_frame, frame);
  }
  return body;
}

}  // namespace catena::plan
