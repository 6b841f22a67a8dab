// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "chain/flow.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_paths.hpp"
#include "pipeline/flow_signals.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {

/// Limits the packets that wait in a chain: stages pause for the rings after them, up to rx, and up to chains of other
/// hosts. Owns the monitors of all rings, the gates of all stages, and the signals.
/// Call order: connect() -> attach() -> the stages run -> end(). By one thread, unless stated otherwise.
class FlowControl {
 public:
  /// `limits`: of each NF, in packets; empty if rings have no bounds.
  explicit FlowControl(std::vector<chain::FlowLimits> limits) : limits_(std::move(limits)) {}
  FlowControl(FlowControl const&) = delete;
  FlowControl& operator=(FlowControl const&) = delete;

  /// Limit of packets in a process with the NFs [`first`, `end`); nullopt without limits.
  std::optional<std::uint64_t> limit_in_process(std::size_t first, std::size_t end) const;
  /// Opens the signals of `config`; nullopt: no host is signalled. `before`: of the running chain to be replaced.
  /// If its signals are the same, both share them, and its pauses count on. Errors: as FlowSignals::create(); with
  /// `before` FailedPrecondition in their place, as the port is most likely in use by it.
  Status connect(std::optional<chain::FlowSignalsConfig> const& config, FlowControl const* before = nullptr);
  /// Bounds the rings and gives each stage its gate, by the mode of `flow`. Queues and tables outlive this, and this
  /// outlives the stages. Before the first packet.
  void attach(chain::FlowConfig const& flow, FlowPaths const& paths);
  /// Adds the counts of pauses, signals, and the ring and stage of each NF. Any thread may read them while this exists.
  void register_counts(metrics::Registry& counts) const;
  /// Ends all pauses, after the last poll of the stages. `is_passed_on`: another chain shares the signals, and keeps
  /// them.
  void end(bool is_passed_on);
  /// Packets dropped because their ring was full. Any thread.
  std::uint64_t refused() const;
  /// Of rx; for waits without a full ring, too. Any thread.
  SourcePauses& pauses() { return *pauses_; }
  /// Whether the source's pauses, or the signals, belong to `before`, too, and so their counts. After connect().
  bool has_pauses_of(FlowControl const& before) const { return pauses_ == before.pauses_; }
  bool has_signals_of(FlowControl const& before) const { return signals_ != nullptr && signals_ == before.signals_; }

 private:
  /// Of an NF in one shard.
  struct Ring {
    memory::UnitQueue const* queue;
    std::unique_ptr<CongestionMonitor> monitor = nullptr;  ///< null without back-pressure
    std::unique_ptr<FlowGate> gate = nullptr;              ///< likewise; null if the NF has no stage
  };
  void add_monitors(chain::FlowConfig const& flow, FlowPaths const& paths);
  void add_gates(FlowPaths const& paths);
  void add_filters(FlowPaths const& paths);
  RateController controller_of(FlowPaths const& paths, std::size_t node, std::size_t shard) const;

  std::vector<chain::FlowLimits> limits_;
  std::shared_ptr<SourcePauses> pauses_ = std::make_shared<SourcePauses>();  ///< shared with the next chain
  std::shared_ptr<FlowSignals> signals_;  ///< null: no host is signalled; shared likewise
  std::optional<TxPause> tx_pause_;       ///< of signals_
  std::vector<std::string> names_;        ///< of the NFs
  std::vector<std::vector<Ring>> rings_;  ///< of each NF, in each shard; empty without limits
  std::deque<FlowGate> rx_gates_;         ///< empty without back-pressure
  std::deque<EdgeFilter> edges_;
};

}  // namespace catena::runtime
