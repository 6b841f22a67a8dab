// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export_config.hpp"
#include "top_talkers.hpp"

#include <catena/nf/nf.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::monitor {

/// A record awaiting export, with its monitor's clock at its end.
struct EndedFlow {
  FlowRecord record;
  std::uint64_t clock_ns;
};

/// State shared by the monitors of a chain: the exporters, the time, and finally the top talkers. Each exporter exists
/// once, so that an observation domain has one sequence of records. An output is opened once and closed by the last
/// monitor to finish. A single monitor works likewise, but without the lock.
///
/// Export functions return the number of records found lost during the call, so that each is counted once, by the
/// calling monitor. Thread rule: any thread, except add_talkers() and take_over() before the first packet, and top()
/// after the last call by any monitor.
class Group {
 public:
  Group(std::vector<NamedExporter> exporters, std::uint32_t monitors);

  /// Names of the exporters, for the start report.
  std::vector<std::string> const& names() const { return names_; }
  bool exports() const { return !exporters_.empty(); }

  /// The number of the monitor that owns a flow, equal for all sharders.
  std::uint32_t monitor_of(packet::Ipv4FlowKey const& flow) const {
    return static_cast<std::uint32_t>((hash_(flow) >> 32) * stamps_.size() >> 32);
  }

  /// Divides by the key of `other`, and equally if it has as many monitors. Before the first packet.
  void divide_as(Group const& other) { hash_ = other.hash_; }
  /// Continues the exports of a group of another number of monitors, which gets the exporters of this one. Before the
  /// first packet.
  void take_over(Group& before);

  std::uint64_t add(std::span<const EndedFlow> flows);
  /// Reports a monitor's clock: flushes the exporters when a second of the group's latest clock has passed.
  std::uint64_t flush_each_second(std::uint64_t clock_ns);

  struct Finish {
    std::uint64_t lost;
    Status status;  ///< of the last monitor: DataLoss, naming each file that could not be written; else OK
  };
  /// Call it after a monitor's last record, once per monitor.
  Finish finish(std::uint64_t clock_ns);

  /// The latest stamp of monitor `index`, and of all monitors. Stamps, because clocks differ after one that was wrong.
  void set_stamp(std::uint32_t index, std::uint64_t stamp_ns) {
    stamps_[index].ns.store(stamp_ns, std::memory_order_relaxed);
  }
  std::uint64_t latest_stamp_ns() const;

  void add_talkers(std::shared_ptr<const TopTalkers> talkers) { talkers_.push_back(std::move(talkers)); }
  std::span<const std::shared_ptr<const TopTalkers>> talkers() const { return talkers_; }
  std::vector<Talker> top(std::size_t count) const { return top_of(talkers_, count); }

 private:
  /// One per cache line: every monitor writes its own after each batch.
  struct alignas(64) Stamp {
    std::atomic<std::uint64_t> ns{0};
  };

  std::unique_lock<std::mutex> lock();
  /// Records found lost since the last call.
  std::uint64_t take_losses();

  const bool is_shared_;
  FlowHash hash_;
  std::vector<std::string> names_;
  std::vector<Stamp> stamps_;  // by monitor
  std::vector<std::shared_ptr<const TopTalkers>> talkers_;

  std::mutex mutex_;  // guards the members below, if is_shared_
  std::vector<std::unique_ptr<Exporter>> exporters_;
  std::uint32_t unfinished_;     // monitors
  std::uint64_t clock_ns_ = 0;   // the latest clock of any export
  std::uint64_t second_ns_ = 0;  // clock_ns_ at the last per-second flush
  std::uint64_t lost_ = 0;
};

/// Divides packets by the monitor's own flows. The chain's flow hash is unsuitable. It divides the fragments of a
/// datagram by their addresses, while the monitor counts a first fragment by its ports. It divides ICMP by identifiers
/// and quotes, while the monitor has one flow per type.
class FlowSharder final : public nf::Sharder {
 public:
  explicit FlowSharder(std::shared_ptr<const Group> group) : group_(std::move(group)) {}
  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override {
    return group_->monitor_of(key_of(packet));
  }

 private:
  std::shared_ptr<const Group> group_;
};

}  // namespace catena::monitor
