// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/flow.hpp"
#include "core/file_descriptor.hpp"
#include "io/bell.hpp"
#include "runtime/flow.hpp"

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

/// Back-pressure between hosts: a chain whose rx has to wait says so to the chains that send to it, as an NF does to
/// those in front of it (Simmer, section 3.3, whose signals are UDP datagrams, too). Datagrams may be lost, come twice,
/// late and in any order, and anybody may send some.
namespace catena::runtime {

/// What a datagram says.
struct FlowSignal {
  enum class Kind : std::uint8_t {
    kAsk = 1,       ///< "tell me, from now on for kFlowForget"
    kSlowDown = 2,  ///< rx waits
    kFastenUp = 3,  ///< it does not
  };
  Kind kind = Kind::kAsk;
  std::uint64_t asker = 0;     ///< a number that nobody can know beforehand, by who asks; who answers repeats it
  std::uint64_t sequence = 0;  ///< greater than that of each before it of the same sender for the same asker
  std::uint8_t hops = 0;       ///< of a slow-down: chains from the one that is congested by itself
  friend bool operator==(FlowSignal const&, FlowSignal const&) = default;
};

inline constexpr std::size_t kFlowSignalBytes = 40;

/// As a datagram: "CTFS", version, kind, hops, zero, asker and sequence in network order, and 16 bytes of HMAC-SHA-256
/// of all that (RFC 2104, RFC 4868).
std::array<std::uint8_t, kFlowSignalBytes> seal(FlowSignal const& signal, std::span<const std::uint8_t> key);
/// None: nobody who has the key has sent that.
std::optional<FlowSignal> open_signal(std::span<const std::uint8_t> datagram, std::span<const std::uint8_t> key);

/// How often who is asked says its state, whether or not it has changed.
inline constexpr std::chrono::milliseconds kFlowRepeat{10};
/// The same, for as long as that after its state has changed.
inline constexpr std::chrono::milliseconds kFlowRepeatAtFirst{1};
/// A slow-down that is not repeated for so long is over: who sent it may be gone, and its fasten-up lost.
inline constexpr std::chrono::milliseconds kFlowHold{50};
/// How often who asks does so.
inline constexpr std::chrono::milliseconds kFlowAsk{100};
/// Who has not asked for so long gets no more signals; who was not answered for so long asks as somebody new.
inline constexpr std::chrono::milliseconds kFlowForget{1000};
/// A slow-down that came so far counts no more, as a distance in RIP (RFC 2453): where chains send to each other in a
/// ring, each would wait for the next when none of them is congested any longer.
inline constexpr std::uint8_t kMaxFlowHops = 16;
/// Chains that may ask one.
inline constexpr std::size_t kMaxFlowAskers = 64;

/// Both ends of the signals of a chain, with a thread of its own.
class FlowSignals {
 public:
  /// `pauses`: those of rx. Errors: as chain::read_signal_key(); what the system says where the address cannot be had.
  static Result<std::unique_ptr<FlowSignals>> create(chain::FlowSignalsConfig const& config,
                                                     std::shared_ptr<SourcePauses> pauses);
  ~FlowSignals() { end(); }
  FlowSignals(FlowSignals const&) = delete;
  FlowSignals& operator=(FlowSignals const&) = delete;

  /// Tells and asks nobody from here on; the port is free. Often is no harm. One thread at a time.
  void end();
  /// Whether it does what `config` says, key included, as one that is made now would.
  bool serves(chain::FlowSignalsConfig const& config) const;

  // Any thread.
  /// Whether a chain behind tx is congested, as far as is known.
  std::atomic<bool> const& is_tx_congested() const { return is_tx_congested_; }
  /// Where it is asked; port 0 of the configuration was any.
  std::uint16_t port() const { return port_; }

  /// Since it was made. Any thread.
  struct Counts {
    std::uint64_t sent = 0;      ///< slow-downs and fasten-ups, with those that were repeated
    std::uint64_t received = 0;  ///< that said something new
    std::uint64_t stale = 0;     ///< that came twice or late, or were for somebody else
    std::uint64_t forged = 0;    ///< by somebody who has not the key
    std::uint64_t timeouts = 0;  ///< slow-downs that were over because they were not repeated
    std::uint64_t unsent = 0;    ///< that the system did not take
    std::uint64_t askers = 0;    ///< now
    std::uint64_t silent = 0;    ///< chains behind tx that do not answer, now
  };
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// A chain in front of rx.
  struct Asker {
    SocketAddress address;
    std::uint64_t number = 0;
    std::uint64_t heard_sequence = 0;
    std::uint64_t sequence = 0;
    Clock::time_point heard{};
  };
  /// A chain behind tx.
  struct Downstream {
    SocketAddress address;
    FileDescriptor socket;
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;
    std::uint64_t heard_sequence = 0;
    Clock::time_point asked{};
    Clock::time_point heard{};
    bool is_congested = false;
    std::uint8_t hops = 0;  ///< of that
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
  std::uint8_t hops_ = 0;  ///< of slow-downs from here
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
  io::Bell end_;
  std::thread thread_;
};

}  // namespace catena::runtime
