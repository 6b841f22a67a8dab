// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/socket_address.hpp"

#include <catena/core/counter.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// The datagrams of back-pressure between hosts. They may be lost, duplicated, late, reordered, or forged.
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

/// A requester without requests for this time gets no more signals. A requester without replies for this time restarts
/// under a new number.
inline constexpr std::chrono::milliseconds kFlowForget{1000};

/// Maximum number of datagrams read from a socket before others have their turn: one with many senders starves no
/// other.
inline constexpr int kDatagramsAtOnce = 64;

/// Sends and receives signals with the key of a chain, through the sockets of the caller. One thread; counts: any.
class FlowSignalTransport {
 public:
  explicit FlowSignalTransport(std::vector<std::uint8_t> key) : key_(std::move(key)) {}
  ~FlowSignalTransport() { erase_key(); }
  FlowSignalTransport(FlowSignalTransport const&) = delete;
  FlowSignalTransport& operator=(FlowSignalTransport const&) = delete;

  /// The next authentic signal of a nonblocking socket, and its sender; nullopt: no datagram is left, or the latest
  /// kDatagramsAtOnce were forged.
  std::optional<FlowSignal> receive(int socket, SocketAddress& from);
  /// `to`: null for a connected socket. False if the system does not accept the datagram.
  bool send(int socket, SocketAddress const* to, FlowSignal const& signal);
  bool has_key(std::span<const std::uint8_t> key) const;
  /// Call after the last receive() and send().
  void erase_key();
  /// Datagrams without the key.
  std::uint64_t forged() const { return forged_; }
  /// Datagrams not accepted by the system.
  std::uint64_t unsent() const { return unsent_; }

 private:
  std::vector<std::uint8_t> key_;
  Counter forged_;
  Counter unsent_;
};

/// The numbering of the signals exchanged with one peer: under one number of the requester, each side counts its
/// signals, and accepts only later ones than before. So duplicates and recorded signals have no effect. One thread.
class FlowSignalSession {
 public:
  using Clock = std::chrono::steady_clock;
  /// `number`: FlowSignal::asker. The peer counts as heard at `now`.
  FlowSignalSession(std::uint64_t number, Clock::time_point now) : number_(number), heard_(now) {}
  /// Begun by the request `first` of a peer.
  FlowSignalSession(FlowSignal const& first, Clock::time_point now)
      : number_(first.asker), heard_sequence_(first.sequence), heard_(now) {}

  std::uint64_t number() const { return number_; }
  /// Time of the latest accepted signal.
  Clock::time_point heard() const { return heard_; }
  /// Whether the signal of the peer belongs to the session and is later than all accepted ones; it is accepted then.
  bool accept(FlowSignal const& signal, Clock::time_point now) {
    if (signal.asker != number_ || signal.sequence <= heard_sequence_) {
      return false;
    }
    heard_sequence_ = signal.sequence;
    heard_ = now;
    return true;
  }
  /// The next signal to the peer.
  FlowSignal next(FlowSignal::Kind kind, std::uint8_t hops = 0) { return {kind, number_, ++sequence_, hops}; }

 private:
  std::uint64_t number_;
  std::uint64_t sequence_ = 0;        ///< of the latest sent signal
  std::uint64_t heard_sequence_ = 0;  ///< of the latest accepted signal
  Clock::time_point heard_;
};

}  // namespace catena::runtime
