// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_sums.hpp"
#include "flow_table.hpp"

#include <catena/packet/packet_clock.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace catena::monitor {

struct Timeouts {
  std::uint64_t idle_ns;    ///< a flow ends after this long without a packet
  std::uint64_t active_ns;  ///< a flow lasting this long is exported and restarts its counters; 0: never
};

struct MeterCounts {
  std::uint64_t flows = 0;     ///< flows started; an active time-out does not start another one
  std::uint64_t peak = 0;      ///< maximum number of flows in the table
  std::uint64_t exported = 0;  ///< records given to the sink
  std::uint64_t evicted = 0;   ///< of these, due to a full table
};

/// The metering process (RFC 7011, section 2): counts packets into flows and decides when to export a flow's record to
/// the sink. Not thread safe.
///
/// Its clock is a PacketClock. All work happens at packets, in order, and at ticks: without ticks, records depend only
/// on the sequence of packets.
///
/// A summed batch gives the same records as its packets one by one. At each packet the clock advances and idle flows
/// end. But a sum is looked up and counted at its first packet, and its flow becomes the newest again at its last
/// packet. This is correct while the flow stays in the table in between:
///
///   idle time-out    the clock advances by less than it from the packet before the batch to the last one
///   eviction         the table has space for all sums, so the oldest flow is not one of theirs
///   active time-out  it is not due by the end of the batch
///
/// If one of the first two conditions fails, the batch is counted packet by packet; if the last one fails, the packets
/// of the sum are.
class Meter {
 public:
  /// `sink` must outlive the meter.
  Meter(FlowTable table, Timeouts timeouts, RecordSink& sink)
      : table_(std::move(table)), timeouts_(timeouts), sink_(&sink) {}

  /// Redirects further records to `sink`, which must outlive the meter.
  void export_to(RecordSink& sink) { sink_ = &sink; }
  /// Counts packets, in order.
  void observe(std::span<const Observation> packets);
  /// Reads the packet at a position of a batch if it must be counted individually.
  using ReadPacket = std::function<Observation(std::uint32_t)>;
  /// The same for a summed batch.
  void observe(SummedBatch const& batch, ReadPacket const& read);
  /// Advances the time on a live link with rare packets; exports up to kExpiriesPerTick idle flows.
  void tick(std::uint64_t now_ns);
  static constexpr std::uint32_t kExpiriesPerTick = 8192;
  /// Exports all remaining flows, least recently used first. `latest_stamp_ns`: the last stamp of all monitors, if it
  /// is later than this meter's; 0: none is.
  void finish(std::uint64_t latest_stamp_ns = 0);

  /// Takes over flows from other meters with the same time-outs, which are not used any more: the ones with true
  /// `is_mine`. Of too many, the ones least recently used are exported. For a meter never used before.
  void take_over(std::span<Meter const* const> before, std::function<bool(packet::Ipv4FlowKey const&)> const& is_mine);
  /// Adds the counts of a meter whose flows other meters have taken over, once this one has its part.
  void add_counts(Meter const& before);

  MeterCounts const& counts() const { return counts_; }
  std::size_t memory_bytes() const { return table_.memory_bytes(); }
  std::uint64_t clock_ns() const { return clock_.now_ns(); }
  /// The stamp that clock_ns() corresponds to. Precondition: observe() or tick() was called.
  std::uint64_t stamp_ns() const { return clock_.stamp_after(0); }

 private:
  /// Prefetches the flows of packets or sums in parallel and stores their hashes in `hashes`.
  template <typename Counted>
  void fetch(std::span<const Counted> of, std::uint64_t* hashes) const;
  void observe_one_by_one(std::uint32_t packets, ReadPacket const& read);
  /// `end_ns`: clock_after() the batch.
  bool can_add_up(SummedBatch const& batch, std::uint64_t end_ns) const;
  /// The clock after packets with these stamps.
  std::uint64_t clock_after(std::span<const std::uint64_t> stamps_ns) const;

  void begin_packet(std::uint64_t stamp_ns);
  void advance_clock(std::uint64_t stamp_ns);
  void expire(std::uint32_t at_most);
  /// The flow's entry, now the newest; started if it is missing, restarted if its time is over.
  std::uint32_t enter(packet::Ipv4FlowKey const& key, std::uint8_t tos, std::uint64_t hash);
  /// Inline, so that the compiler does not build the sum of a single packet.
  void count(FlowSum const& sum, std::uint32_t flow) {
    Flow& counters = table_[flow];
    counters.packets += sum.packets;
    counters.bytes += sum.bytes;
    counters.first_ns = std::min(counters.first_ns, sum.first_ns);
    counters.last_ns = std::max(counters.last_ns, sum.last_ns);
    counters.tcp_flags |= sum.tcp_flags;
  }
  std::uint32_t begin_flow(packet::Ipv4FlowKey const& key, std::uint8_t tos, std::uint64_t hash);
  void end_flow(std::uint32_t flow, EndReason reason);
  bool is_idle(std::uint32_t flow) const { return clock_ns() - table_.used_ns(flow) >= timeouts_.idle_ns; }
  bool is_due(std::uint32_t flow, std::uint64_t at_ns) const {
    return timeouts_.active_ns != 0 && at_ns - table_[flow].started_ns >= timeouts_.active_ns;
  }

  FlowTable table_;
  Timeouts timeouts_;
  RecordSink* sink_;
  MeterCounts counts_;
  packet::PacketClock clock_;
  std::uint64_t second_ns_ = 0;  // time of the sink's last second_passed()

  // by sum number, for the current batch
  std::vector<std::uint64_t> sum_hashes_;
  std::vector<std::uint32_t> sum_flows_;  // kNone: its packets are counted one by one
};

}  // namespace catena::monitor
