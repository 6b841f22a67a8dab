// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/random.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Random captures for the chain fuzzer.
namespace catena::fuzz {

using Frame = packet::testing::Frame;

/// A frame of a capture.
struct CapturedFrame {
  Frame bytes;
  std::uint32_t original_bytes = 0;  ///< on the wire; more than there are where the snap length cut it
  std::uint64_t stamp_ns = 0;
};

/// What a capture is for.
enum class Traffic {
  kAny,
  kFull,  ///< nothing but TCP and UDP in frames as long as rx takes: launches of these are as large as they can be
};

/// Frames of a few flows, in the addresses that the fuzzer's tables speak of: TCP, UDP and ICMP with the texts that its
/// rules look for, ICMP errors about them, fragments, IPv6, ARP and others, VLAN tags, IPv4 options, lengths that lie,
/// frames cut by a snap length, bytes changed at random, frames as long as rx takes.
std::vector<CapturedFrame> make_traffic(Random& random, Traffic traffic);

/// Lies about lengths, cuts, or changes bytes of some of the frames.
void spoil(Random& random, std::vector<CapturedFrame>& frames);

/// Writes and reads pcap files with stamps in nanoseconds. NotFound or PermissionDenied where that cannot be done.
Status write_frames(std::string const& path, std::vector<CapturedFrame> const& frames);
Result<std::vector<CapturedFrame>> read_frames(std::string const& path);

}  // namespace catena::fuzz
