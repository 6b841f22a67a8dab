// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <functional>
#include <memory>
#include <mutex>

#include "device/device.hpp"

namespace catena::device {

/// One turn at a time, of whichever streams: on the device, each waits for the one that was enqueued before it. Any
/// thread. Must not outlive its device.
class Turns {
 public:
  /// Enqueues on `stream` what `enqueue` does, as the next turn. Errors: those of it and of the device; Unimplemented
  /// where streams of the device do not wait for one another.
  Status take(Stream& stream, std::function<Status()> const& enqueue);

 private:
  std::mutex mutex_;
  std::unique_ptr<Event> last_;
};

}  // namespace catena::device
