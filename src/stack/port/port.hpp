// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "stack/tcp/tcp.hpp"

namespace catena::stack {

/// Both directions of an Ethernet port. It completes checksums and cuts large frames into segments, itself or by the
/// kernel. Belongs to one thread at a time.
class Port : public FramePort {
 public:
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t no_room = 0;  ///< frames to be sent, dropped
    std::uint64_t received = 0;
    std::uint64_t bad_checksum = 0;  ///< received frames, dropped
  };
  /// The next frame, valid until the next call; nullopt: no frame has arrived. Its TCP checksum is right.
  virtual std::optional<std::span<const std::byte>> receive() = 0;
  /// Readable while a frame waits, once receive() has returned nullopt. -1: the port must be polled.
  virtual int descriptor() const = 0;
  Counters const& counters() const { return counters_; }

 protected:
  Counters counters_;
};

}  // namespace catena::stack
