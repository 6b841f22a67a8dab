// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/event_notifier.hpp"
#include "chain/flow.hpp"
#include "pipeline/flow.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

/// Back-pressure between hosts: a chain whose rx has to wait signals the chains that send to it, as an NF signals its
/// upstream NFs (Simmer, section 3.3, whose signals are UDP datagrams, too). Datagrams may be lost, duplicated, late,
/// reordered, or forged.
namespace catena::runtime {

/// Content of a datagram.
struct FlowSignal {
  enum class Kind : std::uint8_t {
    kAsk = 1,       ///< "send me signals from now on, for kFlowForget"
    kSlowDown = 2,  ///< rx waits
    kFastenUp = 3,  ///< rx does not wait
  };
  Kind kind = Kind::kAsk;
  std::uint64_t asker = 0;     ///< an unpredictable number, chosen by the requester and repeated in replies
  std::uint64_t sequence = 0;  ///< greater than all earlier ones of the same sender for the same asker
  std::uint8_t hops = 0;       ///< of a slow-down: distance in chains from the congested one
  friend bool operator==(FlowSignal const&, FlowSignal const&) = default;
};

inline constexpr std::size_t kFlowSignalBytes = 40;

/// As a datagram: "CTFS", version, kind, hops, zero, asker and sequence in network order, and 16 bytes of HMAC-SHA-256
/// of all of it (RFC 2104, RFC 4868).
std::array<std::uint8_t, kFlowSignalBytes> seal(FlowSignal const& signal, std::span<const std::uint8_t> key);
/// nullopt unless an owner of the key sent it.
std::optional<FlowSignal> open_signal(std::span<const std::uint8_t> datagram, std::span<const std::uint8_t> key);

/// Interval of signals to a requester, whether or not the state has changed.
inline constexpr std::chrono::milliseconds kFlowRepeat{10};
/// The same during the first kFlowRepeat after a change.
inline constexpr std::chrono::milliseconds kFlowRepeatAtFirst{1};
/// A slow-down expires without repetition in this time: its sender may be gone, and its fasten-up lost.
inline constexpr std::chrono::milliseconds kFlowHold{50};
/// Interval of requests.
inline constexpr std::chrono::milliseconds kFlowAsk{100};
/// A requester without requests for this time gets no more signals. A requester without replies for this time restarts
/// under a new number.
inline constexpr std::chrono::milliseconds kFlowForget{1000};
/// A slow-down with this many hops is ignored, like a distance in RIP (RFC 2453). Otherwise chains in a ring would wait
/// for each other after the congestion has ended.
inline constexpr std::uint8_t kMaxFlowHops = 16;
/// Maximum number of requesters of a chain.
inline constexpr std::size_t kMaxFlowAskers = 64;

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
  std::atomic<bool> const& is_tx_congested() const { return is_tx_congested_; }
  /// The port for requests, also if the configuration has port 0.
  std::uint16_t port() const { return port_; }

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
  using Clock = std::chrono::steady_clock;
  /// An upstream chain of rx.
  struct Asker {
    SocketAddress address;
    std::uint64_t number = 0;
    std::uint64_t heard_sequence = 0;
    std::uint64_t sequence = 0;
    Clock::time_point heard{};
  };
  /// A downstream chain of tx.
  struct Downstream {
    SocketAddress address;
    FileDescriptor socket;
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;
    std::uint64_t heard_sequence = 0;
    Clock::time_point asked{};
    Clock::time_point heard{};
    bool is_congested = false;
    std::uint8_t hops = 0;  ///< of the congestion
    bool is_silent = false;
  };

  FlowSignals(chain::FlowSignalsConfig config, std::vector<std::uint8_t> key, std::shared_ptr<SourcePauses> pauses)
      : config_(std::move(config)), key_(std::move(key)), pauses_(std::move(pauses)) {}
  void serve();
  void answer_askers(Clock::time_point now);
  void tell_askers(Clock::time_point now);
  std::chrono::milliseconds repeat_time(Clock::time_point now) const;
  void tell(Asker& asker);
  void hear(Downstream& downstream, Clock::time_point now);
  void ask(Downstream& downstream, Clock::time_point now);
  void settle(Clock::time_point now);
  std::optional<FlowSignal> receive(int socket, SocketAddress& from);
  void send(int socket, SocketAddress const* to, FlowSignal const& signal, Counter& sent);

  chain::FlowSignalsConfig config_;
  std::vector<std::uint8_t> key_;
  std::shared_ptr<SourcePauses> pauses_;
  FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::vector<Asker> askers_;
  std::vector<Downstream> downstream_;
  bool told_paused_ = false;
  std::uint8_t hops_ = 0;  ///< of own slow-downs
  Clock::time_point told_{};
  Clock::time_point changed_{};
  std::atomic<bool> is_tx_congested_{false};
  Counter sent_;
  Counter asked_;
  Counter received_;
  Counter stale_;
  Counter forged_;
  Counter timeouts_;
  Counter unsent_;
  Counter askers_now_;
  Counter silent_now_;
  std::atomic<bool> is_ending_{false};
  ipc::EventNotifier end_;
  std::thread thread_;
};

}  // namespace catena::runtime
