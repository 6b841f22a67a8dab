// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/nf/testing/harness.hpp>

#include <memory>
#include <vector>

/// An NF that uses every part of the interface, for the tests of the framework: its prepare() numbers packets and drops
/// those with TTL 7; the work adds `aux` to the TTL, XORs the payload with the port's low byte and sums it up, on the
/// CPU and in a kernel. On a device, packets to port 6666 read far outside the payload, those to port 6667 write there,
/// and those to port 6668 read the payload of the last packet that their group has room for, if there is one or not.
namespace catena::nf::testing {

Descriptor marker_descriptor();
std::unique_ptr<Nf> make_marker();
/// UDP and TCP frames of many sizes, some with TTL 7, some that are not IPv4; the same ones each time.
std::vector<Frame> marker_frames(std::size_t count);

}  // namespace catena::nf::testing
