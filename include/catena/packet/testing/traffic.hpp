// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/testing/frames.hpp>

#include <vector>

/// Frames shared by tests of NFs.
namespace catena::packet::testing {

/// Frames of many kinds: TCP, UDP, ICMP, ESP, IPv6, ARP, tagged, with options, fragmented, truncated.
std::vector<Frame> frames_of_every_kind();
/// Frames of every kind, cut at every length up to 64 bytes, and with extreme values in each header byte.
std::vector<Frame> hostile_frames();

}  // namespace catena::packet::testing
