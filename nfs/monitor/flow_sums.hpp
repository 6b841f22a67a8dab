// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow.hpp"

#include <catena/packet/batch.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor.layout.hpp"

namespace catena::monitor {

/// Sums over the packets of one flow in a batch.
struct FlowSum {
  packet::Ipv4FlowKey key;
  std::uint64_t packets;
  std::uint64_t bytes;     ///< IPv4 total lengths
  std::uint64_t first_ns;  ///< earliest and
  std::uint64_t last_ns;   ///< latest stamp
  std::uint32_t first;     ///< position in the batch of the first packet
  std::uint32_t last;      ///< and of the last one
  std::uint16_t tcp_flags;
  std::uint8_t tos;  ///< of the first packet
  bool operator==(FlowSum const&) const = default;
};

/// The sum of a single packet.
inline FlowSum sum_of(Observation const& packet, std::uint32_t position = 0) {
  return {.key = packet.key,
          .packets = 1,
          .bytes = packet.length,
          .first_ns = packet.arrival_ns,
          .last_ns = packet.arrival_ns,
          .first = position,
          .last = position,
          .tcp_flags = packet.tcp_flags,
          .tos = packet.tos};
}

/// A batch with its flows summed. A flow may have several sums; all packets of a later sum follow all packets of an
/// earlier one.
struct SummedBatch {
  std::vector<std::uint64_t> stamps_ns;      ///< by packet
  std::vector<std::uint32_t> sum_of_packet;  ///< by packet: position in `sums`
  std::vector<FlowSum> sums;                 ///< in the order of their first packets
};

/// Makes a SummedBatch from the kernel's results. Reuses its memory for each batch. Not thread safe.
///
/// The kernel sums groups of consecutive packets of a launch, regardless of batch boundaries. If a group's flow crosses
/// a boundary of the batch, its packets in the batch are summed here.
class FlowSums {
 public:
  /// Reads from the batch only the headers of the first packet of each sum: its key, and its length and TCP flags if
  /// the flow crosses a boundary of the batch. `results`: one per packet; no value causes an out-of-bounds access. The
  /// reference is valid until the next call.
  SummedBatch const& add_up(packet::Batch const& batch, std::span<const FlowResult> results);

 private:
  std::uint32_t sum_for(packet::Batch const& batch, FlowResult const& result, std::uint32_t i);
  std::uint32_t begin_sum(packet::Batch const& batch, FlowResult const& result, std::uint32_t i);
  void add_packet(FlowResult const& result, std::uint32_t i, std::uint32_t number);

  SummedBatch summed_;
  std::array<std::uint32_t, kGroupPackets> before_{};  // sum of the flow, by distance of its first packet before the
                                                       // batch
};

}  // namespace catena::monitor
