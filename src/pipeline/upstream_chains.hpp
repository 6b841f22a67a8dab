// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/core/socket_address.hpp"
#include "pipeline/flow_signal.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace catena::runtime {

/// Interval of signals to a requester, whether or not the state has changed.
inline constexpr std::chrono::milliseconds kFlowRepeat{10};
/// The same during the first kFlowRepeat after a change.
inline constexpr std::chrono::milliseconds kFlowRepeatAtFirst{1};
/// Maximum number of requesters of a chain.
inline constexpr std::size_t kMaxFlowAskers = 64;

/// The times at which a state is signalled: at once when it changes, and again after each interval(). So a lost signal
/// is made up for by the next one. One thread.
class SignalSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whether `is_paused` is to be signalled now; it counts as signalled then.
  bool is_due(bool is_paused, Clock::time_point now);
  /// The state signalled last; at first not paused.
  bool is_paused() const { return is_paused_; }
  std::chrono::milliseconds interval(Clock::time_point now) const {
    return now - changed_ < kFlowRepeat ? kFlowRepeatAtFirst : kFlowRepeat;
  }

 private:
  bool is_paused_ = false;
  Clock::time_point signalled_{};
  Clock::time_point changed_{};
};

/// The chains sending to rx, as far as they request signals: tells them whether rx waits. Call order: listen() ->
/// reply() and signal() -> close(). One thread; counts: any.
class UpstreamChains {
 public:
  using Clock = std::chrono::steady_clock;
  /// `transport` outlives this.
  explicit UpstreamChains(FlowSignalTransport& transport) : transport_(&transport) {}

  /// Opens the socket for requests. The system's error if the address is not available.
  Status listen(SocketAddress const& address);
  bool is_listening() const { return bool{socket_}; }
  int socket() const { return socket_.get(); }
  /// The port for requests, also if the address has port 0; 0 without listen(). Any thread.
  std::uint16_t port() const { return port_; }
  /// Reads all waiting requests, and replies to each with the state signalled last. Forgets requesters without
  /// requests for kFlowForget. `hops`: of own slow-downs.
  void reply(std::uint8_t hops, Clock::time_point now);
  /// Signals the state of rx to all requesters if it is due.
  void signal(bool is_paused, std::uint8_t hops, Clock::time_point now);
  /// Time until signal() is due again.
  std::chrono::milliseconds interval(Clock::time_point now) const { return schedule_.interval(now); }
  /// Frees the port.
  void close() { socket_.close(); }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  /// Duplicate or late requests, and requests beyond kMaxFlowAskers.
  std::uint64_t stale() const { return stale_; }
  /// Number of requesters now.
  std::uint64_t requesters() const { return requesters_now_; }

 private:
  struct Requester {
    SocketAddress address;
    FlowSignalSession session;
  };
  Requester* accept(FlowSignal const& request, SocketAddress const& from, Clock::time_point now);
  void send_state(Requester& to, std::uint8_t hops);

  FlowSignalTransport* transport_;
  FileDescriptor socket_;
  std::uint16_t port_ = 0;
  std::vector<Requester> requesters_;
  SignalSchedule schedule_;
  Counter sent_;
  Counter received_;
  Counter stale_;
  Counter requesters_now_;
};

}  // namespace catena::runtime
