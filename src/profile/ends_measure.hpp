// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>

/// Measures what a chain does besides its NFs.
namespace catena::profile {

/// Of a packet on one core, in ns: medians of several passes through a packet pool that no cache holds.
struct EndTimes {
  double rx_ns = 0;  ///< until it is in the first queue, where its frame is in memory, as behind a NIC
  double tx_ns = 0;  ///< from the last queue on, where it is thrown away
};

/// With frames of `packet_bytes` bytes. Errors: as io::make_replay(); ResourceExhausted: no memory for packets.
Result<EndTimes> measure_ends(std::uint32_t packet_bytes);

}  // namespace catena::profile
