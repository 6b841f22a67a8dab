// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/core/socket_address.hpp"
#include "pipeline/flow_signal.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {

/// A slow-down expires without repetition in this time: its sender may be gone, and its fasten-up lost.
inline constexpr std::chrono::milliseconds kFlowHold{50};
/// Interval of requests.
inline constexpr std::chrono::milliseconds kFlowAsk{100};
/// A slow-down with this many hops is ignored, like a distance in RIP (RFC 2453). Otherwise chains in a ring would wait
/// for each other after the congestion has ended.
inline constexpr std::uint8_t kMaxFlowHops = 16;

/// The state of a chain receiving packets of tx, by its signals. One thread.
class DownstreamChain {
 public:
  using Clock = std::chrono::steady_clock;
  /// `name`: for the log.
  DownstreamChain(std::string name, Clock::time_point now);

  /// Takes a signal; false if it has no effect: it is a request, a duplicate, late, or for another requester.
  bool accept(FlowSignal const& signal, Clock::time_point now);
  /// The request to send now; nullopt: it is not due. A chain without a signal for kFlowForget may be another process:
  /// it is silent from here on, and the request begins a new session, for which recorded signals are not valid.
  std::optional<FlowSignal> request(Clock::time_point now);
  /// Whether its congestion ends now, for lack of repetition.
  bool expire(Clock::time_point now);
  bool is_congested() const { return is_congested_; }
  /// Of its congestion.
  std::uint8_t hops() const { return hops_; }
  /// Whether it has not replied for kFlowForget.
  bool is_silent() const { return is_silent_; }

 private:
  std::string name_;
  FlowSignalSession session_;
  Clock::time_point requested_{};
  bool is_congested_ = false;
  std::uint8_t hops_ = 0;
  bool is_silent_ = false;
};

/// The chains receiving the packets of tx: requests their signals, and knows whether one of them is congested.
/// Call order: add() -> exchange() -> close(). One thread, unless stated otherwise.
class DownstreamChains {
 public:
  using Clock = std::chrono::steady_clock;
  /// `transport` outlives this.
  explicit DownstreamChains(FlowSignalTransport& transport) : transport_(&transport) {}

  /// The system's error if it cannot be reached from here.
  Status add(SocketAddress const& address);
  std::vector<int> sockets() const;
  /// Reads all waiting signals, sends the requests now due, and updates the state.
  void exchange(Clock::time_point now);
  /// Distance in chains from the nearest congested one, for own slow-downs; 0 if no downstream chain is congested.
  std::uint8_t hops() const { return hops_; }
  /// Closes the sockets. No chain counts as congested from here on.
  void close();

  // Any thread.
  /// Whether one is congested, as far as known.
  std::atomic<bool> const& is_any_congested() const { return is_any_congested_; }
  std::uint64_t received() const { return received_; }
  /// Duplicate or late signals, or for another requester.
  std::uint64_t stale() const { return stale_; }
  /// Slow-downs that expired without repetition.
  std::uint64_t timeouts() const { return timeouts_; }
  /// Number of chains without a reply now.
  std::uint64_t silent() const { return silent_now_; }

 private:
  struct Peer {
    FileDescriptor socket;
    DownstreamChain chain;
  };
  void receive(Peer& from, Clock::time_point now);
  void update(Clock::time_point now);

  FlowSignalTransport* transport_;
  std::vector<Peer> peers_;
  std::atomic<bool> is_any_congested_{false};
  std::uint8_t hops_ = 0;
  Counter received_;
  Counter stale_;
  Counter timeouts_;
  Counter silent_now_;
};

}  // namespace catena::runtime
