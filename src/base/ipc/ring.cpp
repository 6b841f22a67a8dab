// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/ring.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace catena::ipc {

void clear_wake_ups(int socket) {
  std::array<std::byte, 4096> wake_ups;
  static_cast<void>(::recv(socket, wake_ups.data(), wake_ups.size(), MSG_DONTWAIT));
}

bool is_other_end_closed(int socket) {
  // recv(2) would report the bytes before the end
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && end.revents != 0;
}

void wake_reader(RingHead& head, int socket) {
  // the reader arms first and looks for messages then, the writer writes messages first and looks then
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (head.armed.load(std::memory_order_relaxed) != 0) {
    head.armed.store(0, std::memory_order_relaxed);
    static_cast<void>(::send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL));  // if it is full, wake-ups are pending
  }
}

Result<std::uint32_t> RingCursor::waiting(std::uint32_t depth) {
  const std::uint32_t waiting = head_->pushed.load(std::memory_order_acquire) - taken_;
  if (waiting == 0) {
    arm();
    return waiting;
  }
  idle_polls_ = 0;
  if (waiting > depth) {
    return absl::DataLossError(concat("it claims ", waiting, " messages at once; the ring holds ", depth));
  }
  return waiting;
}

/// A polling reader looks again before it sleeps, so that it sees a message written meanwhile.
void RingCursor::arm() {
  constexpr std::uint32_t kCheckEvery = 64;  // polls, after which a wake-up without a message is cleared
  const bool is_checked = ++idle_polls_ % kCheckEvery == 0;
  if (is_armed_ && !is_checked && head_->armed.load(std::memory_order_relaxed) != 0) {
    return;
  }
  if (is_armed_) {
    clear_wake_ups(socket_);
  }
  is_armed_ = true;
  head_->armed.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace catena::ipc
