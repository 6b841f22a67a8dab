// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "io/tcp_run.hpp"
#include "packet/vnet_header.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <catena/core/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::io {

/// Sends frames on a kernel interface: many per system call, and consecutive TCP segments as one frame (TcpRun). The
/// interface then carries the same bytes in the same order. One thread at a time.
class KernelSender {
 public:
  struct Sent {
    std::size_t taken;   ///< frames from the first on, taken or permanently refused by the kernel
    std::size_t failed;  ///< refused frames in `taken`
    int error;           ///< of the kernel, for refused frames; 0: no frame was refused
  };

  /// Unavailable and similar codes, with the kernel's reason, if the socket cannot be opened. `joins_segments`: see
  /// cuts_segments(); if false, frames are sent unchanged.
  static Result<std::unique_ptr<KernelSender>> open(unsigned int interface, bool joins_segments);
  ~KernelSender();
  KernelSender(KernelSender const&) = delete;
  KernelSender& operator=(KernelSender const&) = delete;

  /// Takes effect at the next send(); any thread. See open().
  void join_segments(bool joins) { joins_segments_.store(joins, std::memory_order_relaxed); }
  /// `memory`: of the slots. Waits up to 100 us if the kernel takes no frame; `taken` is 0 then. The kernel keeps no
  /// frame.
  Sent send(std::uint8_t* memory, std::span<const SlotFrame> frames);

 private:
  struct Header {
    packet::VnetHeader kernel;
    std::array<std::uint8_t, TcpRun::kMaxHeaderBytes> frame;
  };

  KernelSender(int socket, bool joins_segments) : socket_(socket), joins_segments_(joins_segments) {}
  void prepare(std::uint8_t* memory, std::span<const SlotFrame> frames, bool joins);

  int socket_;
  std::atomic<bool> joins_segments_;
  std::size_t single_frames_ = 0;  ///< number of next frames sent unjoined, after the kernel refused them as one
  std::vector<TcpRun> runs_;       ///< one per message
  std::vector<Header> headers_;    ///< one per message
  std::vector<iovec> pieces_;      ///< of all messages
  std::vector<mmsghdr> messages_;
};

}  // namespace catena::io
