// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/io/tcp_run.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <catena/core/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct rte_mbuf;

namespace catena::dataplane {

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

  /// Waits up to 100 us where the kernel takes none; then `taken` is 0. The kernel keeps no frame.
  Sent send(std::span<rte_mbuf* const> frames);

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
  void prepare(std::span<rte_mbuf* const> frames);

  int socket_;
  bool joins_segments_;
  std::vector<TcpRun> runs_;     ///< one for each message
  std::vector<Header> headers_;  ///< one for each message
  std::vector<iovec> pieces_;    ///< of all messages
  std::vector<mmsghdr> messages_;
};

}  // namespace catena::dataplane
