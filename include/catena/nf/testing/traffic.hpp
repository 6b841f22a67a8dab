// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/frames.hpp>

#include <vector>

/// Frames that tests of NFs share.
namespace catena::nf::testing {

/// Frames of many kinds: TCP, UDP, ICMP, ESP, IPv6, ARP, tagged, with options, fragmented, cut short.
std::vector<Frame> frames_of_every_kind();
/// Those, cut at every length up to 64 bytes, and with extreme values in each byte of their headers.
std::vector<Frame> hostile_frames();

}  // namespace catena::nf::testing
