// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/flow.hpp"
#include "chain/graph.hpp"
#include "io/bell.hpp"
#include "memory/unit_queue.hpp"

#include <catena/core/counter.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// No packet is lost inside a chain, and none is worked on that has to wait later: an NF in front of which too many
/// packets wait has the NFs before it pause. Rate-proportional back-pressure, as in "Simmer: Rate Proportional
/// Scheduling to Reduce Packet Drops in vGPU Based NF Chains" (ICPP 2022), sections 3.2 and 3.3; NFVnice (SIGCOMM 2017)
/// has it for NFs on CPUs.
namespace catena::runtime {

/// The congestion monitor of the ring in front of an NF. Its states are what Simmer's signals say: a slow-down to each
/// NF in front when it becomes congested, a fasten-up when it no longer is; who gets them reads them here.
class CongestionMonitor {
 public:
  enum class State : std::uint8_t {
    kFree,
    kCongested,  ///< more than slow_down
    kCrowded,    ///< and more than half of what its share is above that
    kFull,       ///< more than its share, too
  };

  /// `nf`: its name. `queue`: outlives this. `receivers`: NFs in front of it, and rx, that a signal goes to. `period`:
  /// how often the ring is looked at.
  CongestionMonitor(std::string nf, memory::UnitQueue const& queue, chain::FlowLimits const& limits,
                    std::uint32_t receivers, std::chrono::nanoseconds period)
      : nf_(std::move(nf)), queue_(&queue), limits_(limits), receivers_(receivers), period_(period) {}
  CongestionMonitor(CongestionMonitor const&) = delete;
  CongestionMonitor& operator=(CongestionMonitor const&) = delete;

  std::string const& nf() const { return nf_; }
  chain::FlowLimits const& limits() const { return limits_; }
  /// Looks at the ring, where the period has passed. By the thread of the NF's stage.
  void look(std::chrono::steady_clock::time_point now);
  // Any thread.
  /// As the last signal said.
  State state() const { return state_.load(std::memory_order_relaxed); }
  /// As it is now: who sends much must not wait until the thread of the NF looks again.
  State state_now() const { return std::max(state(), next_state(queue_->packets())); }
  /// Signals that were sent, one to each receiver.
  std::uint64_t slow_downs() const { return slow_downs_; }
  std::uint64_t fasten_ups() const { return fasten_ups_; }
  /// The most packets that were seen in the ring.
  std::uint64_t most() const { return most_; }

 private:
  State next_state(std::uint64_t packets) const;

  std::string nf_;
  memory::UnitQueue const* queue_;
  chain::FlowLimits limits_;
  std::uint32_t receivers_;
  std::chrono::nanoseconds period_;
  std::chrono::steady_clock::time_point looked_{};
  std::atomic<State> state_{State::kFree};
  Counter slow_downs_;
  Counter fasten_ups_;
  Counter most_;
};

/// Whether those who send to tx have to wait for a chain behind it. Any thread.
class TxPause {
 public:
  /// A chain that ends waits no longer than that.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// `is_congested`: whether one behind has too many packets; outlives this.
  explicit TxPause(std::atomic<bool> const& is_congested) : is_congested_(&is_congested) {}

  bool is_on() const {
    if (!is_congested_->load(std::memory_order_relaxed)) {
      return false;
    }
    const std::int64_t until = until_ns_.load(std::memory_order_relaxed);
    return until == 0 || std::chrono::steady_clock::now().time_since_epoch() < std::chrono::nanoseconds(until);
  }
  /// No more packets come: what is inside leaves soon, whatever the one behind says.
  void end() {
    const auto until = std::chrono::steady_clock::now().time_since_epoch() + kPatience;
    until_ns_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(until).count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> const* is_congested_;
  std::atomic<std::int64_t> until_ns_{0};  ///< 0: as long as the one behind says so
};

/// The rate controller of an NF, or of rx: whether it may take packets, by the rings of the NFs behind it. It is off
/// where all of them are congested, and where one is full: with other ways to send, one that is congested may have its
/// share of the pool. Who is off begins nothing; what it has begun ends.
class RateController {
 public:
  /// `behind`: those of the NFs where packets go next; none: tx, which takes all. `tx`: of who may send there, where it
  /// may have to wait, else null; outlives this.
  explicit RateController(std::vector<CongestionMonitor const*> behind = {}, TxPause const* tx = nullptr)
      : behind_(std::move(behind)), tx_(tx) {}

  bool is_on() const;

 private:
  std::vector<CongestionMonitor const*> behind_;
  TxPause const* tx_;
};

/// Whether what brings packets to a chain is paused, for those who tell others. Any thread.
class SourcePauses {
 public:
  bool any() const { return paused_.load(std::memory_order_relaxed) > 0; }
  /// How often one paused.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  void begin() {
    count_.fetch_add(1, std::memory_order_relaxed);
    if (paused_.fetch_add(1, std::memory_order_relaxed) == 0) {
      changed_.ring();
    }
  }
  void end() {
    if (paused_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      changed_.ring();
    }
  }
  /// Rung when any() has changed; for one thread.
  io::Bell& changed() { return changed_; }

 private:
  std::atomic<std::uint32_t> paused_{0};
  std::atomic<std::uint64_t> count_{0};
  io::Bell changed_;
};

/// At rx of a live source, which cannot wait: the packets that are going to meet an NF whose share of memory is half
/// used, as far as their headers say. They are dropped there, before anybody worked on them, so that those of other
/// ways go on; with less a burst waits. One thread at a time.
class EdgeFilter {
 public:
  /// `tables`: of rx and of the NFs. `monitors`: of the NFs, by their numbers. All outlive this.
  EdgeFilter(std::span<const chain::SteerTable> tables, std::vector<CongestionMonitor const*> monitors);

  /// Looks at all rings, for the packets that come next: whether any of them could be refused.
  bool look();
  bool refuses(packet::Packet const& packet) const;

 private:
  std::span<const chain::SteerTable> tables_;
  std::vector<CongestionMonitor const*> monitors_;
  std::vector<bool> is_crowded_;  ///< of each NF, at the last look
};

/// What a stage asks about its own ring and those behind it.
class FlowGate {
 public:
  /// `monitor`: null for rx, which has no ring. Of rx alone, and else null: `pauses`, where it says that it waits, and
  /// `tx`, which is told when it ends. They outlive this.
  FlowGate(CongestionMonitor* monitor, RateController controller, SourcePauses* pauses = nullptr, TxPause* tx = nullptr)
      : monitor_(monitor), controller_(std::move(controller)), of_source_(pauses), tx_(tx) {}

  /// To be asked at each poll by the thread of the stage: looks at its ring, and says whether it may take packets.
  bool may_take();
  /// The stage asks no more. By its thread.
  void end();
  /// Whether it might at the last poll. Any thread.
  bool was_paused() const { return was_paused_.load(std::memory_order_relaxed); }
  /// How often it was paused. Any thread.
  std::uint64_t pauses() const { return pauses_; }

 private:
  void pause(bool is_paused);

  CongestionMonitor* monitor_;
  RateController controller_;
  SourcePauses* of_source_;
  TxPause* tx_;
  std::atomic<bool> was_paused_{false};
  Counter pauses_;
};

}  // namespace catena::runtime
