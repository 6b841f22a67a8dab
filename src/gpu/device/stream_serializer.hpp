// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <functional>
#include <memory>
#include <mutex>

#include "gpu/device/device.hpp"

namespace catena::device {

/// Serializes work of several streams: on the device, each piece of work waits for the one enqueued before it. Any
/// thread. Must not outlive its device.
class StreamSerializer {
 public:
  /// Calls `enqueue`, which enqueues the next piece of work on `stream`. Errors: of `enqueue` and of the device;
  /// Unimplemented if streams of the device cannot wait for one another.
  Status take(Stream& stream, std::function<Status()> const& enqueue);

 private:
  std::mutex mutex_;
  std::unique_ptr<Event> last_;
};

}  // namespace catena::device
