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
/// In place of a slot: the frame was longer than packet::kMaxFrameBytes, and the port dropped it.
inline constexpr std::uint32_t kTooLong = 0xFFFFFFFF;

/// Frames of a port since it was opened.
struct PortCounters {
  std::uint64_t missed = 0;   ///< arrived with no room where the port keeps them
  std::uint64_t no_slot = 0;  ///< arrived and found no slot of the pool
  std::uint64_t rx_errors = 0;
  std::uint64_t sent = 0;
  std::uint64_t tx_errors = 0;  ///< taken by send(), and not sent
};

/// Where frames come in and leave. receive() by one thread at a time, send() by one at a time; the rest by any.
class Port {
 public:
  Port() = default;
  virtual ~Port() = default;
  Port(Port const&) = delete;
  Port& operator=(Port const&) = delete;

  /// Frames that are there, in order: how many of `frames` from the first on. Their slots are the caller's, but where
  /// `slot` is kTooLong.
  virtual std::size_t receive(std::span<SlotFrame> frames) = 0;
  /// Of a port that others have, too: what arrives from here on may be for this one. Until then it is theirs.
  virtual void start_receiving() {}
  /// And no longer, whether or not it began. By who receives, who does so no more: what is still to be received is the
  /// port's to count, and counters() say the last of what arrived. Often is no harm.
  virtual void stop_receiving() {}
  /// Offers frames: how many from the first on the port took. Their slots are its own then, which it gives back to the
  /// pool once they are sent.
  virtual std::size_t send(std::span<const SlotFrame> frames) = 0;
  /// By who sends, who does so no more: what a port that others have, too, took and has not sent by now never leaves,
  /// and is in counters() as errors. Often is no harm.
  virtual void stop_sending() {}
  /// A file descriptor that is readable while receive() has frames to give; -1: there is none.
  virtual int readable_when_received() const { return -1; }
  virtual PortCounters counters() const = 0;
  /// Longest frame that the port sends, a VLAN tag not counted.
  virtual std::uint32_t max_tx_bytes() const = 0;
  /// The interface of the kernel that packets come from and go to; empty where the port is none.
  virtual std::string const& interface() const = 0;
  /// Looks what became of the interface: Unavailable, with its name, if it was removed, which a socket does not say.
  /// Calls of the kernel.
  virtual Status check_interface() = 0;
  /// "dpdk net_tap0 (net_tap, link up)"
  virtual std::string describe() const = 0;
};

}  // namespace catena::io
