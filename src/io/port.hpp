// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace catena::io {

/// A frame in a slot of the packet pool.
struct SlotFrame {
  std::uint32_t slot;
  std::uint16_t offset;  ///< first byte in the slot
  std::uint16_t length;
};
/// Slot value for a frame longer than packet::kMaxFrameBytes, which the port has dropped.
inline constexpr std::uint32_t kTooLong = 0xFFFFFFFF;

/// Frame counters of a port since it was opened.
struct PortCounters {
  std::uint64_t missed = 0;   ///< arrived while the port's buffer was full
  std::uint64_t no_slot = 0;  ///< arrived without a free slot in the pool
  std::uint64_t rx_errors = 0;
  std::uint64_t sent = 0;
  std::uint64_t tx_errors = 0;  ///< taken by send() but not sent
};

/// Receives and sends frames. receive() by one thread at a time, send() by one at a time; all others by any thread.
class Port {
 public:
  Port() = default;
  virtual ~Port() = default;
  Port(Port const&) = delete;
  Port& operator=(Port const&) = delete;

  /// Fills `frames` from the front with available frames, in order, and returns their number. The caller owns their
  /// slots, except where `slot` is kTooLong.
  virtual std::size_t receive(std::span<SlotFrame> frames) = 0;
  /// For a shared port: frames arriving from now on may be delivered to this user. Until then they go to the others.
  virtual void start_receiving() {}
  /// Ends delivery, even if it was never started. Called by the receiving thread, which then stops calling receive().
  /// The port counts the frames not yet received, and the rx values of counters() are final. May be called more than
  /// once.
  virtual void stop_receiving() {}
  /// Offers frames; returns how many the port took, from the first on. The port owns their slots and returns them to
  /// the pool once they are sent.
  virtual std::size_t send(std::span<const SlotFrame> frames) = 0;
  /// Called by the sending thread, which then stops calling send(). Frames that a shared port has taken and not sent by
  /// now are never sent, and counters() has them as errors. May be called more than once.
  virtual void stop_sending() {}
  /// A file descriptor that is readable while receive() has frames; -1: not supported.
  virtual int readable_when_received() const { return -1; }
  virtual PortCounters counters() const = 0;
  /// Longest frame that the port sends, without a VLAN tag.
  virtual std::uint32_t max_tx_bytes() const = 0;
  /// The kernel interface of the port; empty if it has no interface.
  virtual std::string const& interface() const = 0;
  /// Checks the interface. Unavailable, with its name, if it was removed, which a socket does not report. Makes system
  /// calls.
  virtual Status check_interface() = 0;
  /// "dpdk net_tap0 (net_tap, link up)"
  virtual std::string describe() const = 0;
};

}  // namespace catena::io
