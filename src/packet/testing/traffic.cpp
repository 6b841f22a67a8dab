// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/testing/traffic.hpp>

#include <catena/packet/headers.hpp>

#include <algorithm>
#include <string>

namespace catena::packet::testing {
namespace {

Frame esp_frame(std::uint32_t spi, std::size_t bytes) {
  Frame frame = make_frame(packet::kProtocolUdp, 0xC6336401, 0xCB007101, 0, 0, std::string(bytes, 'c'));
  frame[23] = packet::kProtocolEsp;
  packet::store_be32(frame.data() + 34, spi);
  packet::store_be32(frame.data() + 38, 1);
  return frame;
}

}  // namespace

std::vector<Frame> frames_of_every_kind() {
  const Frame tcp =
      make_frame(packet::kProtocolTcp, 0x0A000006, 0xD4C7CA09, 40000, 80, "GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  const Frame udp = make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A00008A, 5353, 53,
                               "\x03"
                               "com");
  const Frame icmp = make_echo(0x0A000001, 0x0A00008A, 7, 1, "ping");
  Frame ipv6 = tcp;
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  Frame cut = tcp;
  cut.resize(60);
  return {tcp,
          udp,
          icmp,
          ipv6,
          make_arp_request(0x0A000001, 0x0A00008A),
          cut,
          esp_frame(4096, 64),
          esp_frame(99, 64),
          with_vlan(tcp, 1),
          with_vlan(udp, 2),
          with_vlan(tcp, 3),
          with_options(tcp, 10),
          with_options(udp, 1),
          with_fragment(udp, 0x2000),
          with_fragment(udp, 0x0001),
          with_fragment(tcp, 0x3FFF),
          with_fragment(tcp, 0x0001),
          with_fragment(icmp, 0x2000),
          with_fragment(esp_frame(4096, 64), 0x2000)};
}

std::vector<Frame> hostile_frames() {
  constexpr std::size_t kLongestCut = 64;
  constexpr std::size_t kFirstByte = 12;  // MAC addresses can be anything
  constexpr std::size_t kEndOfHeaders = 74;
  std::vector<Frame> frames;
  for (Frame const& whole : frames_of_every_kind()) {
    for (std::size_t length = 0; length <= std::min(kLongestCut, whole.size()); ++length) {
      frames.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    }
    for (std::size_t at = kFirstByte; at < std::min(whole.size(), kEndOfHeaders); ++at) {
      for (const int value : {0x00, 0x01, 0x0F, 0x40, 0x46, 0x4F, 0x7F, 0x80, 0xFF}) {
        frames.push_back(whole);
        frames.back()[at] = static_cast<std::uint8_t>(value);
      }
    }
  }
  return frames;
}

}  // namespace catena::packet::testing
