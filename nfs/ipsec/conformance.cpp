// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include <string>

#include "ipsec.hpp"
#include "ipsec_testing.hpp"

namespace {

using catena::nf::testing::Frame;
using catena::nf::testing::make_frame;

constexpr const char* kAssociations = R"(associations:
  - spi: 4096
    source: 198.51.100.1
    destination: 203.0.113.1
    encryption_key: "000102030405060708090a0b0c0d0e0f"
    salt: "a0a1a2a3"
    authentication_key: "101112131415161718191a1b1c1d1e1f20212223"
    selector: {protocol: tcp}
    df: set
  - spi: 4097
    source: 198.51.100.1
    destination: 203.0.113.1
    encryption_key: "303132333435363738393a3b3c3d3e3f"
    salt: "b0b1b2b3"
    authentication_key: "404142434445464748494a4b4c4d4e4f50515253"
    selector: {source: 10.0.0.0/8, protocol: udp}
    udp_encapsulation: {source_port: 4500, destination_port: 4500}
)";

/// Frames of both tunnels, of every payload size in turn, and some that no tunnel takes or that grow too long.
std::vector<Frame> plain_frames(std::uint32_t count) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    frames.push_back(make_frame(i % 3 == 0 ? 6 : 17, i % 11 == 5 ? 0x0B000001 : 0x0A000001, 0x0C000001, 1000, 2000,
                                std::string(i % 17 == 9 ? 1480 : i % 200, 'p')));
  }
  return frames;
}

/// What the other end of the tunnels sends, with a damaged and a repeated frame among it.
std::vector<Frame> esp_frames() {
  const auto sent = catena::ipsec::testing::run_everywhere("encrypt", kAssociations, plain_frames(2000), "", {256});
  std::vector<Frame> frames = catena::ipsec::testing::survivors(sent);
  frames[10].back() ^= 1U;
  frames.insert(frames.begin() + 20, frames[5]);
  return frames;
}

}  // namespace

CATENA_NF_CONFORMANCE(ipsec_encrypt, catena_nf_ipsec(), [] {
  std::vector<Frame> frames = plain_frames(100);
  constexpr std::uint16_t kDontFragment = 0x4000;
  frames.push_back(
      with_fragment(make_frame(6, 0x0A000001, 0x0C000001, 1000, 2000, std::string(1480, 'p')), kDontFragment));
  return Subject{.yaml = "direction: encrypt\nsa: sa.yaml\nmtu: 1500\n",
                 .files = {{"sa.yaml", kAssociations}},
                 .frames = frames,
                 .reached = {{"no_sa", 1}, {"too_long", 1}}};
});

CATENA_NF_CONFORMANCE(ipsec_decrypt, catena_nf_ipsec(), [] {
  return Subject{.yaml = "direction: decrypt\nsa: sa.yaml\n",
                 .files = {{"sa.yaml", kAssociations}},
                 .frames = esp_frames(),
                 .reached = {{"bad_icv", 1}, {"replay", 1}}};
});
