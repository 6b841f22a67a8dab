// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "io/tcp_run.hpp"

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

/// Sends frames on an interface of the kernel: one call for many, and consecutive TCP segments as one frame (TcpRun).
/// What the interface carries afterwards is the same bytes in the same order. One thread at a time.
class KernelSender {
 public:
  struct Sent {
    std::size_t taken;   ///< frames from the first on that the kernel took, or refused for good
    std::size_t failed;  ///< of those, refused
    int error;           ///< of the kernel, for those; 0: none was refused
  };

  /// Unavailable and the like, with the kernel's reason, if there is no such socket.
  /// `joins_segments`: see cuts_segments(); else frames stay as they are.
  static Result<std::unique_ptr<KernelSender>> open(unsigned int interface, bool joins_segments);
  ~KernelSender();
  KernelSender(KernelSender const&) = delete;
  KernelSender& operator=(KernelSender const&) = delete;

  /// From the next send() on; by any thread. See open().
  void join_segments(bool joins) { joins_segments_.store(joins, std::memory_order_relaxed); }
  /// `memory`: of the slots. Waits up to 100 us where the kernel takes none; then `taken` is 0. The kernel keeps no
  /// frame.
  Sent send(std::uint8_t* memory, std::span<const SlotFrame> frames);

 private:
  /// virtio_net_hdr, whose header is none of C++.
  struct VnetHeader {
    std::uint8_t flags;
    std::uint8_t gso_type;
    std::uint16_t header_bytes;
    std::uint16_t segment_bytes;
    std::uint16_t checksum_start;
    std::uint16_t checksum_offset;
  };
  static_assert(sizeof(VnetHeader) == 10);
  struct Header {
    VnetHeader kernel;
    std::array<std::uint8_t, TcpRun::kMaxHeaderBytes> frame;
  };

  KernelSender(int socket, bool joins_segments) : socket_(socket), joins_segments_(joins_segments) {}
  void prepare(std::uint8_t* memory, std::span<const SlotFrame> frames, bool joins);

  int socket_;
  std::atomic<bool> joins_segments_;
  std::size_t single_frames_ = 0;  ///< next ones that are not joined: the kernel refused them as one
  std::vector<TcpRun> runs_;       ///< one for each message
  std::vector<Header> headers_;    ///< one for each message
  std::vector<iovec> pieces_;      ///< of all messages
  std::vector<mmsghdr> messages_;
};

}  // namespace catena::io
