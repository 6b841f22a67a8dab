// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>

/// Measures the work of a chain besides its NFs.
namespace catena::profile {

/// Per packet on one core, in ns: medians of several passes through a packet pool larger than the caches.
struct EndTimes {
  double rx_ns = 0;  ///< until it is in the first queue, with its frame in memory, as after a NIC
  double tx_ns = 0;  ///< from the last queue on; tx discards it
};

/// With frames of `packet_bytes` bytes. Errors: as io::make_replay(); ResourceExhausted: no memory for packets.
Result<EndTimes> measure_ends(std::uint32_t packet_bytes);

}  // namespace catena::profile
