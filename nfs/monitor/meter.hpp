// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_sums.hpp"
#include "flow_table.hpp"

#include <catena/nf/packet_clock.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

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
///
/// A batch whose flows are added up gives the records that its packets give one by one. The clock goes on, and what is
/// idle ends, at each packet; but a sum is looked up and counted at its first packet, and its flow becomes the newest
/// again at its last. That is right as long as the flow stays in the table from the one to the other:
///
///   idle time-out    the clock goes on by less than it from the packet before the batch to the last one
///   eviction         the table has room for all sums, so the oldest flow is none of theirs
///   active time-out  it is not due by the end of the batch
///
/// Without one of the first two the batch is counted packet by packet, without the last one the packets of the sum.
class Meter {
 public:
  /// `sink` must outlive the meter.
  Meter(FlowTable table, Timeouts timeouts, RecordSink& sink)
      : table_(std::move(table)), timeouts_(timeouts), sink_(&sink) {}

  /// From here on records go to that one, which must outlive the meter.
  void export_to(RecordSink& sink) { sink_ = &sink; }
  /// Counts packets, in their order.
  void observe(std::span<const Observation> packets);
  /// Gives the packet at a position of a batch, where that has to be counted by itself.
  using ReadPacket = std::function<Observation(std::uint32_t)>;
  /// The same for a batch whose flows are added up.
  void observe(SummedBatch const& batch, ReadPacket const& read);
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
  /// Fetches what the flows of packets or sums need, so that they wait for memory side by side; `hashes` gets theirs.
  template <typename Counted>
  void fetch(std::span<const Counted> of, std::uint64_t* hashes) const;
  void observe_one_by_one(std::uint32_t packets, ReadPacket const& read);
  /// `end_ns`: clock_after() the batch.
  bool can_add_up(SummedBatch const& batch, std::uint64_t end_ns) const;
  /// What the clock will be after packets with these stamps.
  std::uint64_t clock_after(std::span<const std::uint64_t> stamps_ns) const;

  void begin_packet(std::uint64_t stamp_ns);
  void advance_clock(std::uint64_t stamp_ns);
  void expire(std::uint32_t at_most);
  /// The flow's entry, now the newest; begun now where there is none, or where its time is over.
  std::uint32_t enter(FlowKey const& key, std::uint8_t tos, std::uint64_t hash);
  /// Here for the compiler: it makes no sum of a packet alone.
  void count(FlowSum const& sum, std::uint32_t flow) {
    Flow& counters = table_[flow];
    counters.packets += sum.packets;
    counters.bytes += sum.bytes;
    counters.first_ns = std::min(counters.first_ns, sum.first_ns);
    counters.last_ns = std::max(counters.last_ns, sum.last_ns);
    counters.tcp_flags |= sum.tcp_flags;
  }
  std::uint32_t begin_flow(FlowKey const& key, std::uint8_t tos, std::uint64_t hash);
  void end_flow(std::uint32_t flow, EndReason reason);
  bool is_idle(std::uint32_t flow) const { return clock_ns() - table_.used_ns(flow) >= timeouts_.idle_ns; }
  bool is_due(std::uint32_t flow, std::uint64_t at_ns) const {
    return timeouts_.active_ns != 0 && at_ns - table_[flow].started_ns >= timeouts_.active_ns;
  }

  FlowTable table_;
  Timeouts timeouts_;
  RecordSink* sink_;
  MeterCounts counts_;
  nf::PacketClock clock_;
  std::uint64_t second_ns_ = 0;  // when the sink was last told that a second has passed

  // by number of the sum, of the batch at hand
  std::vector<std::uint64_t> sum_hashes_;
  std::vector<std::uint32_t> sum_flows_;  // kNone: its packets are counted one by one
};

}  // namespace catena::monitor
