// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ipc/event_notifier.hpp"
#include "chain/flow.hpp"
#include "packet/memory/unit_queue.hpp"

#include <catena/core/counter.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// No packet is lost inside a chain, and no NF works on packets that must wait later: an NF with too many waiting
/// packets pauses its upstream NFs. Rate-proportional back-pressure, as in "Simmer: Rate Proportional Scheduling to
/// Reduce Packet Drops in vGPU Based NF Chains" (ICPP 2022), sections 3.2 and 3.3; NFVnice (SIGCOMM 2017) has it for
/// NFs on CPUs.
namespace catena::runtime {

/// Congestion monitor of an NF's ring. Its states are Simmer's signals: a slow-down to each upstream NF when it becomes
/// congested, a fasten-up when it no longer is. The receivers read the state here.
class CongestionMonitor {
 public:
  enum class State : std::uint8_t {
    kFree,
    kCongested,  ///< more than slow_down
    kCrowded,    ///< and more than halfway from there to its share
    kFull,       ///< and more than its share
  };

  /// `nf`: its name. `queue`: outlives this. `receivers`: number of upstream NFs, and rx, that get a signal. `period`:
  /// interval of the checks of the ring.
  CongestionMonitor(std::string nf, memory::UnitQueue const& queue, chain::FlowLimits const& limits,
                    std::uint32_t receivers, std::chrono::nanoseconds period)
      : nf_(std::move(nf)), queue_(&queue), limits_(limits), receivers_(receivers), period_(period) {}
  CongestionMonitor(CongestionMonitor const&) = delete;
  CongestionMonitor& operator=(CongestionMonitor const&) = delete;

  std::string const& nf() const { return nf_; }
  chain::FlowLimits const& limits() const { return limits_; }
  /// Checks the ring if the period has passed. By the thread of the NF's stage.
  void look(std::chrono::steady_clock::time_point now);
  // Any thread.
  /// As last signalled.
  State state() const { return state_.load(std::memory_order_relaxed); }
  /// The state now: a fast sender must not wait for the next check by the NF's thread.
  State state_now() const { return std::max(state(), next_state(queue_->packets())); }
  /// Signals sent, one to each receiver.
  std::uint64_t slow_downs() const { return slow_downs_; }
  std::uint64_t fasten_ups() const { return fasten_ups_; }
  /// Peak number of packets found in the ring.
  std::uint64_t most() const { return most_; }

 private:
  State next_state(std::uint64_t packets) const;

  std::string nf_;
  memory::UnitQueue const* queue_;
  chain::FlowLimits limits_;
  std::uint32_t receivers_;
  std::chrono::nanoseconds period_;
  std::chrono::steady_clock::time_point checked_{};
  std::atomic<State> state_{State::kFree};
  Counter slow_downs_;
  Counter fasten_ups_;
  Counter most_;
};

/// Whether stages that send to tx have to wait for a downstream chain. Any thread.
class TxPause {
 public:
  /// Maximum wait of a chain that ends.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// `is_congested`: whether a downstream chain has too many packets; outlives this.
  explicit TxPause(std::atomic<bool> const& is_congested) : is_congested_(&is_congested) {}

  bool is_on() const {
    if (!is_congested_->load(std::memory_order_relaxed)) {
      return false;
    }
    const std::int64_t until = until_ns_.load(std::memory_order_relaxed);
    return until == 0 || std::chrono::steady_clock::now().time_since_epoch() < std::chrono::nanoseconds(until);
  }
  /// No more packets come: packets inside leave soon, whatever the downstream chain signals.
  void end() {
    const auto until = std::chrono::steady_clock::now().time_since_epoch() + kPatience;
    until_ns_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(until).count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> const* is_congested_;
  std::atomic<std::int64_t> until_ns_{0};  ///< 0: as long as the downstream chain signals it
};

/// Rate controller of an NF, or of rx: whether it may take packets, by the rings of its downstream NFs. It is off if
/// all of them are congested, or if one is full. With other branches to send to, a congested one may use its share of
/// the pool. A stage that is off starts no work, but completes work in progress.
class RateController {
 public:
  /// Takes the monitors of the next NFs, or an empty list for tx, which takes all packets. `tx`: for senders to it that
  /// may have to wait, else null; outlives this.
  explicit RateController(std::vector<CongestionMonitor const*> behind = {}, TxPause const* tx = nullptr)
      : behind_(std::move(behind)), tx_(tx) {}

  bool is_on() const;

 private:
  std::vector<CongestionMonitor const*> behind_;
  TxPause const* tx_;
};

/// Whether the sources of a chain are paused, for signals to others and for metrics. Any thread.
class SourcePauses {
 public:
  bool any() const;
  /// How often a source was paused.
  std::uint64_t count() const;
  /// Time so far during which at least one source was paused. Never less than at an earlier call.
  std::chrono::nanoseconds time() const;
  /// A source pauses, or no longer does: as many calls of end() as of begin().
  void begin();
  void end();
  /// Rung when any() has changed; for one thread.
  ipc::EventNotifier& changed() { return changed_; }

 private:
  mutable std::mutex mutex_;  ///< guards the next four
  std::uint32_t paused_ = 0;
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds time_{0};               ///< of the pauses that have ended
  std::chrono::steady_clock::time_point began_{};  ///< of the present pause, if paused_
  ipc::EventNotifier changed_;
};

/// A stage's view of its own ring and the downstream ones.
class FlowGate {
 public:
  /// `monitor`: null for rx, which has no ring. Only for rx, else null: `pauses`, where rx reports its waits, and `tx`,
  /// which is told of the end of rx. They outlive this.
  FlowGate(CongestionMonitor* monitor, RateController controller, SourcePauses* pauses = nullptr, TxPause* tx = nullptr)
      : monitor_(monitor), controller_(std::move(controller)), of_source_(pauses), tx_(tx) {}

  /// Checks the stage's ring, and whether the stage may take packets. Call at each poll, by the thread of the stage.
  bool may_take();
  /// No calls follow. By the stage's thread.
  void end();
  /// Whether it was paused at the last poll. Any thread.
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
