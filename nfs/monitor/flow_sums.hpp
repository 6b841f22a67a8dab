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

/// Packets of one flow in a batch, added up.
struct FlowSum {
  FlowKey key;
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

/// The sum of a packet alone.
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

/// A batch whose flows are added up. A flow may have several sums; the packets of a later one all come after those of
/// an earlier one.
struct SummedBatch {
  std::vector<std::uint64_t> stamps_ns;      ///< by packet
  std::vector<std::uint32_t> sum_of_packet;  ///< by packet: position in `sums`
  std::vector<FlowSum> sums;                 ///< in the order of their first packets
};

/// Makes a SummedBatch of what the kernel said. Keeps its memory from one batch to the next. Not thread safe.
///
/// The kernel adds up groups of packets that follow one another in a launch, and where a batch begins in a launch is no
/// concern of it. Of a flow that a group has on both sides of a batch's border, what is in the batch is added up here.
class FlowSums {
 public:
  /// Of the headers of the batch it reads those of the first packet of each sum: its key, and where the flow crosses a
  /// border of the batch its length and TCP flags too. `results`: one for each packet; no value makes it read or write
  /// out of bounds. The reference is good until the next call.
  SummedBatch const& add_up(packet::Batch const& batch, std::span<const FlowResult> results);

 private:
  std::uint32_t sum_for(packet::Batch const& batch, FlowResult const& result, std::uint32_t i);
  std::uint32_t begin_sum(packet::Batch const& batch, FlowResult const& result, std::uint32_t i);
  void add_packet(FlowResult const& result, std::uint32_t i, std::uint32_t number);

  SummedBatch summed_;
  std::array<std::uint32_t, kGroupPackets> before_{};  // sum of the flow whose first packet is so far before the batch
};

}  // namespace catena::monitor
