// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_table.hpp"

#include <catena/nf/packet_clock.hpp>

#include <cstdint>
#include <span>

namespace catena::monitor {

struct Timeouts {
  std::uint64_t idle_ns;    ///< a flow without a packet for this long has ended
  std::uint64_t active_ns;  ///< a flow that goes on for this long is exported and counted anew; 0: never
};

struct MeterCounts {
  std::uint64_t flows = 0;     ///< flows that began; one that goes on after an active time-out began once
  std::uint64_t peak = 0;      ///< most flows in the table at a time
  std::uint64_t exported = 0;  ///< records given to the sink
  std::uint64_t evicted = 0;   ///< of these, for lack of room in the table
};

/// The metering process (RFC 7011, section 2): counts packets into flows and decides when a flow's record goes to the
/// sink. Not thread safe.
///
/// Its clock is a PacketClock. Everything happens at packets, in their order, and at ticks: without ticks records
/// depend on the sequence of packets alone.
class Meter {
 public:
  /// `sink` must outlive the meter.
  Meter(FlowTable table, Timeouts timeouts, RecordSink& sink)
      : table_(std::move(table)), timeouts_(timeouts), sink_(&sink) {}

  /// Counts packets, in their order.
  void observe(std::span<const Observation> packets);
  /// The time of a live link on which packets may be rare: exports up to kExpiriesPerTick flows that are idle by then.
  void tick(std::uint64_t now_ns);
  static constexpr std::uint32_t kExpiriesPerTick = 8192;
  /// Exports all flows that are left, least recently used first. `latest_ns`: the time at the end, if it is later than
  /// the meter's clock.
  void finish(std::uint64_t latest_ns = 0);

  MeterCounts const& counts() const { return counts_; }
  std::size_t memory_bytes() const { return table_.memory_bytes(); }
  std::uint64_t clock_ns() const { return clock_.now_ns(); }

 private:
  void observe_one(Observation const& packet, std::uint64_t hash);
  void advance_clock(std::uint64_t stamp_ns);
  void expire(std::uint32_t at_most);
  std::uint32_t begin_flow(Observation const& packet, std::uint64_t hash);
  void end_flow(std::uint32_t flow, EndReason reason);
  bool is_idle(std::uint32_t flow) const { return clock_ns() - table_.used_ns(flow) >= timeouts_.idle_ns; }
  bool is_due(std::uint32_t flow) const {
    return timeouts_.active_ns != 0 && clock_ns() - table_[flow].started_ns >= timeouts_.active_ns;
  }

  FlowTable table_;
  Timeouts timeouts_;
  RecordSink* sink_;
  MeterCounts counts_;
  nf::PacketClock clock_;
  std::uint64_t second_ns_ = 0;  // when the sink was last told that a second has passed
};

}  // namespace catena::monitor
