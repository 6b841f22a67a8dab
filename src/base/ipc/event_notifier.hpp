// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace catena::ipc {

/// A descriptor that is readable from ring() to quiet(). A ring() concurrent with quiet() may be lost, but the work
/// done before it is visible after that quiet(), so check for work once more after quiet(). Any thread.
class EventNotifier {
 public:
  EventNotifier() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~EventNotifier() { close(event_); }
  EventNotifier(EventNotifier const&) = delete;
  EventNotifier& operator=(EventNotifier const&) = delete;

  int descriptor() const { return event_; }
  void ring() {
    if (!is_ringing_.exchange(true)) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);  // never full: no other writer
    }
  }
  void quiet() {
    if (!is_ringing_.load()) {
      return;
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t read_bytes = read(event_, &count, sizeof count);
    is_ringing_.exchange(false);  // not a store: makes the pushes before a ring() that found it true visible
  }

 private:
  int event_;
  std::atomic<bool> is_ringing_{false};
};

}  // namespace catena::ipc
