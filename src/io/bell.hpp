// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace catena::io {

/// A descriptor that is readable from ring() to quiet(). What was done before a ring() that fell into a quiet() is seen
/// after that quiet(): who has quieted it looks once more. Any thread.
class Bell {
 public:
  Bell() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Bell() { close(event_); }
  Bell(Bell const&) = delete;
  Bell& operator=(Bell const&) = delete;

  int descriptor() const { return event_; }
  void ring() {
    if (!is_ringing_.exchange(true)) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);  // it has room: nobody else adds to it
    }
  }
  void quiet() {
    if (!is_ringing_.load()) {
      return;
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t read_bytes = read(event_, &count, sizeof count);
    is_ringing_.exchange(false);  // and not stored: who finds it true is seen to have pushed before
  }

 private:
  int event_;
  std::atomic<bool> is_ringing_{false};
};

}  // namespace catena::io
