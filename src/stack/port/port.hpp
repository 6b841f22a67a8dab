// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "stack/tcp/tcp.hpp"

namespace catena::stack {

/// Where a stack's frames leave and arrive. Belongs to one thread at a time.
class Port : public FramePort {
 public:
  /// The next frame, valid until the next call; nullopt: no frame has arrived. Its TCP checksum is right.
  virtual std::optional<std::span<const std::byte>> receive() = 0;
  /// Readable while a frame waits.
  virtual int descriptor() const = 0;
};

}  // namespace catena::stack
