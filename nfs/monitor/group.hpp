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

/// A record that waits for export, with the clock of its monitor when it ended.
struct EndedFlow {
  FlowRecord record;
  std::uint64_t clock_ns;
};

/// What the monitors that divide the packets of a chain among them share: the exporters, the time, and at the end the
/// top talkers. There is one of each exporter, so that an observation domain has one sequence of records, and an output
/// is opened once and ended by the monitor that finishes last. Of one monitor alone this is all the same, but for the
/// lock.
///
/// Functions that export return how many records were found lost during the call, so that each is counted once, by the
/// monitor that called. Thread rule: any thread, but add_talkers() before packets come, and top() when no monitor is
/// called any more.
class Group {
 public:
  Group(std::vector<NamedExporter> exporters, std::uint32_t monitors);

  /// Names of the exporters, for the start report.
  std::vector<std::string> const& names() const { return names_; }
  bool exports() const { return !exporters_.empty(); }

  /// The number of the monitor that has a flow, the same for every divider.
  std::uint32_t monitor_of(FlowKey const& flow) const {
    return static_cast<std::uint32_t>((hash_(flow) >> 32) * clocks_.size() >> 32);
  }

  std::uint64_t add(std::span<const EndedFlow> flows);
  /// A monitor's clock has gone on: what waits in the exporters goes out when a second has passed for all of them.
  std::uint64_t flush_each_second(std::uint64_t clock_ns);

  struct Finish {
    std::uint64_t lost;
    Status status;  ///< of the last monitor: DataLoss, naming each file that could not be written; else ok
  };
  /// After a monitor's last record; once for each monitor.
  Finish finish(std::uint64_t clock_ns);

  /// The time that monitor `index` has come to, and the latest of all.
  void set_clock(std::uint32_t index, std::uint64_t clock_ns) {
    clocks_[index].ns.store(clock_ns, std::memory_order_relaxed);
  }
  std::uint64_t latest_ns() const;

  void add_talkers(std::shared_ptr<const TopTalkers> talkers) { talkers_.push_back(std::move(talkers)); }
  std::vector<Talker> top(std::size_t count) const { return top_of(talkers_, count); }

 private:
  /// One each in a cache line: every monitor writes its own after each batch.
  struct alignas(64) Clock {
    std::atomic<std::uint64_t> ns{0};
  };

  std::unique_lock<std::mutex> lock();
  /// Records that were found lost since this was called last.
  std::uint64_t take_losses();

  const bool is_shared_;
  const FlowHash hash_;
  std::vector<std::string> names_;
  std::vector<Clock> clocks_;  // by monitor
  std::vector<std::shared_ptr<const TopTalkers>> talkers_;

  std::mutex mutex_;  // for what follows, if is_shared_
  std::vector<std::unique_ptr<Exporter>> exporters_;
  std::uint32_t unfinished_;     // monitors
  std::uint64_t clock_ns_ = 0;   // the latest that any of them exported with
  std::uint64_t second_ns_ = 0;  // clock_ns_ when the exporters were flushed because a second had passed
  std::uint64_t lost_ = 0;
};

/// Divides packets by the monitor's own flows. The hash that a chain divides flows by would not do: it takes the
/// fragments of a datagram by their addresses, where a first fragment is one of the packets with its ports here, and
/// ICMP by identifiers and quotes, where one flow has all of a type.
class FlowDivider final : public nf::Divider {
 public:
  explicit FlowDivider(std::shared_ptr<const Group> group) : group_(std::move(group)) {}
  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override {
    return group_->monitor_of(key_of(packet));
  }

 private:
  std::shared_ptr<const Group> group_;
};

}  // namespace catena::monitor
