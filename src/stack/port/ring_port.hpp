// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "stack/port/port.hpp"

namespace catena::stack {

/// Rings of frames in memory shared with another process, or with another thread by a port of its own. Frames keep
/// their size of up to 64 KiB, and their checksums stay open: each end vouches for its frames. Neither end has to trust
/// the other one with its memory.
class RingPort final : public Port {
 public:
  /// Attaches to the port at the socket `path`, or makes it and waits for a peer. A peer that leaves may be followed by
  /// another one, if it attached. Unavailable: the socket cannot be made. ResourceExhausted: no memory.
  static Result<std::unique_ptr<RingPort>> open(std::string const& path);
  ~RingPort() override;
  RingPort(RingPort const&) = delete;
  RingPort& operator=(RingPort const&) = delete;

  /// Without a peer all frames are dropped.
  bool send(OutgoingFrame const& frame) override;
  std::optional<std::span<const std::byte>> receive() override;
  int descriptor() const override { return epoll_.get(); }

 private:
  struct Link;
  explicit RingPort(std::string path);

  /// `is_first`: this side made the memory.
  Status link(FileDescriptor socket, FileDescriptor memory, bool is_first);
  void unlink();
  void watch(int fd, bool is_on) const;
  /// Continues with an attaching peer.
  void meet();

  std::string path_;         ///< of the socket; empty: this side attached
  FileDescriptor listener_;  ///< empty: this side attached
  FileDescriptor epoll_;
  FileDescriptor guest_;  ///< a peer whose memory has not arrived
  ipc::FrameReader greeting_;
  std::unique_ptr<Link> link_;  ///< null: without a peer
  std::vector<std::byte> buffer_;
};

}  // namespace catena::stack
