// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ipc/event_notifier.hpp"
#include "chain/flow.hpp"
#include "pipeline/downstream_chains.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_signal.hpp"
#include "pipeline/upstream_chains.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

/// Back-pressure between hosts: a chain whose rx has to wait signals the chains that send to it, as an NF signals its
/// upstream NFs (Simmer, section 3.3, whose signals are UDP datagrams, too).
namespace catena::runtime {

/// Sends and receives the signals of a chain, in a thread of its own.
class FlowSignals {
 public:
  /// `pauses`: of rx. Errors: as chain::read_signal_key(); the system's error if the address is not available.
  static Result<std::unique_ptr<FlowSignals>> create(chain::FlowSignalsConfig const& config,
                                                     std::shared_ptr<SourcePauses> pauses);
  ~FlowSignals() { end(); }
  FlowSignals(FlowSignals const&) = delete;
  FlowSignals& operator=(FlowSignals const&) = delete;

  /// Stops all signals and requests, and frees the port. May be called repeatedly. One thread at a time.
  void end();
  /// Whether it equals a new one with `config`, key included.
  bool serves(chain::FlowSignalsConfig const& config) const;

  // Any thread.
  /// Whether a downstream chain of tx is congested, as far as known.
  std::atomic<bool> const& is_tx_congested() const { return downstream_.is_any_congested(); }
  /// The port for requests, also if the configuration has port 0.
  std::uint16_t port() const { return upstream_.port(); }

  /// Since creation. Any thread.
  struct Counts {
    std::uint64_t sent = 0;      ///< slow-downs and fasten-ups, including repetitions
    std::uint64_t received = 0;  ///< valid ones with new content
    std::uint64_t stale = 0;     ///< duplicate or late ones, or for another requester
    std::uint64_t forged = 0;    ///< not authenticated with the key
    std::uint64_t timeouts = 0;  ///< slow-downs that expired without repetition
    std::uint64_t unsent = 0;    ///< not accepted by the system
    std::uint64_t askers = 0;    ///< now
    std::uint64_t silent = 0;    ///< downstream chains without a reply, now
  };
  Counts counts() const;

 private:
  FlowSignals(chain::FlowSignalsConfig config, std::vector<std::uint8_t> key, std::shared_ptr<SourcePauses> pauses)
      : config_(std::move(config)), transport_(std::move(key)), pauses_(std::move(pauses)) {}
  void serve();

  chain::FlowSignalsConfig config_;
  FlowSignalTransport transport_;
  std::shared_ptr<SourcePauses> pauses_;
  UpstreamChains upstream_{transport_};
  DownstreamChains downstream_{transport_};
  std::atomic<bool> is_ending_{false};
  ipc::EventNotifier end_;
  std::thread thread_;
};

}  // namespace catena::runtime
