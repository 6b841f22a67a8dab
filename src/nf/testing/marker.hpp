// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/nf/testing/harness.hpp>

#include <memory>
#include <vector>

/// An NF that uses every part of the interface, for tests of the framework. Its prepare() numbers packets and drops
/// packets with TTL 7. The work adds `aux` to the TTL, XORs the payload with the port's low byte and sums it up, on the
/// CPU and in a kernel. On a device, packets to port 6666 read far outside the payload, packets to port 6667 write
/// there, and packets to port 6668 read the payload of the last possible packet of their group, whether it exists or
/// not.
namespace catena::nf::testing {

Descriptor marker_descriptor();
std::unique_ptr<Nf> make_marker();
/// UDP and TCP frames of many sizes, some with TTL 7, some without IPv4; equal each time.
std::vector<Frame> marker_frames(std::size_t count);

}  // namespace catena::nf::testing
