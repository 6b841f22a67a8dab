// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.hpp"

#include <catena/nf/testing/harness.hpp>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Shared by the tests of this NF.
namespace catena::ipsec::testing {

using nf::testing::Frame;
using nf::testing::RunResult;

/// An NF that encrypts or decrypts (`direction`) with the associations of an SA file with text `sa_text`. `more`:
/// additional configuration lines.
Result<std::unique_ptr<nf::Nf>> make(std::string_view direction, std::string_view sa_text, std::string_view more = "");

/// The SPIs of the SA files of the tests, for RunContext::new_keys.
inline std::set<std::uint32_t> test_spis() { return {4096, 4097, 4098, 4099, 5000}; }

/// An SA file with one tunnel for all traffic. `more`: additional lines.
std::string one_tunnel(std::string_view more = "");

/// An SA file with two tunnels: one for packets that match `selector`, and one in UDP to another end for `in_udp`.
std::string two_tunnels(std::string_view selector, std::string_view in_udp);

/// Runs the NF over the frames on the CPU and on every device, each with units of 1, 31, 33 and 256 packets (or
/// `sizes`). Expects equal output, verdicts, records and counters, and returns them, with records in packet order.
RunResult run_everywhere(std::string_view direction, std::string_view sa_text, std::vector<Frame> const& frames,
                         std::string_view more = "", std::vector<std::uint32_t> const& sizes = {1, 31, 33, 256});

/// RFC 6040 section 4.2, figure 4, row by row: the ECN field of the packet after the tunnel.
inline constexpr std::uint8_t kNotEct = 0;
inline constexpr std::uint8_t kEct1 = 1;
inline constexpr std::uint8_t kEct0 = 2;
inline constexpr std::uint8_t kCe = 3;
inline constexpr std::uint8_t kEcnDrop = 255;
struct EcnCase {
  std::uint8_t inner;
  std::uint8_t outer;
  std::uint8_t leaving;
};
inline constexpr std::array<EcnCase, 16> kEcnTable{{
    {kNotEct, kNotEct, kNotEct},
    {kNotEct, kEct0, kNotEct},
    {kNotEct, kEct1, kNotEct},
    {kNotEct, kCe, kEcnDrop},
    {kEct0, kNotEct, kEct0},
    {kEct0, kEct0, kEct0},
    {kEct0, kEct1, kEct1},
    {kEct0, kCe, kCe},
    {kEct1, kNotEct, kEct1},
    {kEct1, kEct0, kEct1},
    {kEct1, kEct1, kEct1},
    {kEct1, kCe, kCe},
    {kCe, kNotEct, kCe},
    {kCe, kEct0, kCe},
    {kCe, kEct1, kCe},
    {kCe, kCe, kCe},
}};

/// The frames not dropped.
std::vector<Frame> survivors(RunResult const& result);
std::vector<Frame> frames_of(RunResult const& result);

/// Expects equal frames; reports the first difference, in hexadecimal.
void expect_frames(std::vector<Frame> const& actual, std::vector<Frame> const& expected, std::string_view where = "");

/// The plain IPv4 frames, truncated after the datagram.
std::vector<Frame> ipv4_frames(std::vector<Frame> const& frames);

/// The frame with this flags and offset word in its IPv4 header, and a correct checksum.
inline Frame with_fragment_word(Frame frame, std::uint16_t word) {
  return nf::testing::with_header_checksum(nf::testing::with_fragment(std::move(frame), word));
}

/// One UDP frame from 10.1.0.1 to 10.2.0.1 for every payload size in [0, sizes).
std::vector<Frame> frames_of_every_size(std::uint32_t sizes);

}  // namespace catena::ipsec::testing
