// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ipc/ring.hpp"

/// The shared memory of one application and the stack.
namespace catena::stack {

/// Sizes of a segment. All are powers of two.
struct SegmentShape {
  std::uint32_t sessions = 1024;
  std::uint32_t rx_bytes = 64 * 1024;   ///< of a session's receive FIFO; at least a page
  std::uint32_t tx_bytes = 256 * 1024;  ///< of a session's send FIFO; at least a page
};
/// Whether each size is a power of two within the bounds of a segment: each end checks the numbers of the other.
constexpr bool is_possible(SegmentShape const& shape) {
  constexpr std::uint32_t kSmallest = 4096;
  constexpr std::uint32_t kLargest = 1U << 22U;
  constexpr std::uint32_t kMostSessions = 1U << 16U;
  const auto is_size = [](std::uint32_t bytes) {
    return std::has_single_bit(bytes) && bytes >= kSmallest && bytes <= kLargest;
  };
  return std::has_single_bit(shape.sessions) && shape.sessions <= kMostSessions && is_size(shape.rx_bytes) &&
         is_size(shape.tx_bytes);
}

/// Address and port of one end, as bytes that both processes read the same way.
struct SharedEndpoint {
  std::array<std::uint8_t, 16> address;  ///< IPv6, or IPv4-mapped; network order
  std::uint16_t port;                    ///< host order
};

/// The stack's line of a session. Bytes of FIFOs are counted from the start of the connection, modulo 2^32.
struct alignas(64) StackLine {
  enum State : std::uint32_t { kOpen = 1, kPeerClosed = 2, kReset = 4 };
  std::atomic<std::uint32_t> generation;  ///< of the slot: changes with each connection; 0: no connection yet
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> received;  ///< bytes put into the receive FIFO
  std::atomic<std::uint32_t> freed;     ///< bytes taken from the send FIFO
  std::atomic<std::uint32_t> notified;  ///< 1: an event of the session is in the ring. The application clears it
  SharedEndpoint local;                 ///< written before `generation`
  SharedEndpoint peer;
};
static_assert(sizeof(StackLine) == 64);

/// The application's line of a session. The stack clears it before a connection gets the slot.
struct alignas(64) AppLine {
  /// kReturn: the application did not accept the connection, and listens no more. kAccepted: it did.
  enum Wish : std::uint32_t { kShutdown = 1, kClose = 2, kAbort = 4, kReturn = 8, kAccepted = 16 };
  std::atomic<std::uint32_t> wishes;
  std::atomic<std::uint32_t> committed;    ///< bytes put into the send FIFO
  std::atomic<std::uint32_t> consumed;     ///< bytes taken from the receive FIFO
  std::atomic<std::uint32_t> wants_space;  ///< 1: an event when half of the send FIFO is free
  std::atomic<std::uint32_t> commanded;    ///< 1: a command of the session is in the ring. The stack clears it
};
static_assert(sizeof(AppLine) == 64);

/// A port at which the application listens.
struct alignas(64) ListenerLine {
  std::atomic<std::uint32_t> request;  ///< the application: number of its last request; 0: no request yet
  std::atomic<std::uint32_t> port;     ///< 0: ends the listening
  std::atomic<std::uint32_t> backlog;
  std::atomic<std::uint32_t> answered;   ///< the stack: number of the request with `error`
  std::atomic<std::uint32_t> error;      ///< of errno.h; 0: it listens, or listens no more
  std::atomic<std::uint32_t> commanded;  ///< as of AppLine
};

/// A segment's parts: two rings of numbers, lines, FIFOs. A number below `sessions` is a session's, others a
/// listener's. A number is in a ring once at most (`notified`, `commanded`), so a ring cannot overflow, unless the
/// other end lies. A view; zeroed memory is a segment without connections.
class SharedSegment {
 public:
  static constexpr std::uint32_t kListeners = 16;
  static constexpr std::size_t kPage = 4096;

  /// Precondition: is_possible(shape).
  static std::size_t bytes(SegmentShape const& shape) { return fifos_at(shape) + fifo_bytes(shape) * shape.sessions; }
  /// `memory`: bytes(shape) bytes, aligned to a page.
  SharedSegment(std::span<std::byte> memory, SegmentShape const& shape) : memory_(memory.data()), shape_(shape) {}

  SegmentShape const& shape() const { return shape_; }
  ipc::RingHead& events_head() const { return at<ipc::RingHead>(0); }
  ipc::RingHead& commands_head() const { return at<ipc::RingHead>(sizeof(ipc::RingHead)); }
  ipc::RingMessages<std::uint32_t> events() const { return messages(0); }
  ipc::RingMessages<std::uint32_t> commands() const { return messages(1); }
  StackLine& stack_line(std::uint32_t session) const {
    return at<StackLine>(lines_at(shape_) + session * sizeof(StackLine));
  }
  AppLine& app_line(std::uint32_t session) const {
    return at<AppLine>(lines_at(shape_) + (shape_.sessions + session) * sizeof(AppLine));
  }
  ListenerLine& listener(std::uint32_t number) const {
    return at<ListenerLine>(lines_at(shape_) + (2 * shape_.sessions + number) * sizeof(ListenerLine));
  }
  std::span<std::byte> rx(std::uint32_t session) const {
    return {memory_ + fifos_at(shape_) + fifo_bytes(shape_) * session, shape_.rx_bytes};
  }
  std::span<std::byte> tx(std::uint32_t session) const {
    return {memory_ + fifos_at(shape_) + fifo_bytes(shape_) * session + shape_.rx_bytes, shape_.tx_bytes};
  }

 private:
  static constexpr std::size_t kLine = 64;
  static std::size_t fifo_bytes(SegmentShape const& shape) { return std::size_t{shape.rx_bytes} + shape.tx_bytes; }
  static ipc::RingShape ring(SegmentShape const& shape) {
    return {.max_entries = 1, .depth = std::bit_ceil(shape.sessions + kListeners)};
  }
  static std::size_t ring_bytes(SegmentShape const& shape) {
    return (ipc::RingMessages<std::uint32_t>::bytes(ring(shape)) + kLine - 1) / kLine * kLine;
  }
  static std::size_t lines_at(SegmentShape const& shape) { return 2 * sizeof(ipc::RingHead) + 2 * ring_bytes(shape); }
  static std::size_t fifos_at(SegmentShape const& shape) {
    const std::size_t end = lines_at(shape) + (2 * std::size_t{shape.sessions} + kListeners) * kLine;
    return (end + kPage - 1) / kPage * kPage;
  }
  ipc::RingMessages<std::uint32_t> messages(std::size_t number) const {
    return {{memory_ + 2 * sizeof(ipc::RingHead) + number * ring_bytes(shape_), ring_bytes(shape_)}, ring(shape_)};
  }
  template <typename T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(memory_ + offset);
  }

  std::byte* memory_;
  SegmentShape shape_;
};

}  // namespace catena::stack
