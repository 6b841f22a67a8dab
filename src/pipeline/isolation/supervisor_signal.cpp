// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/supervisor_signal.hpp"

#include <catena/core/text.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace catena::nf_process {

using Clock = std::chrono::steady_clock;

Result<FileDescriptor> make_event() {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return event ? Result<FileDescriptor>(std::move(event))
               : absl::ResourceExhaustedError(concat("eventfd: ", std::strerror(errno)));
}

int poll_time(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

Status SupervisorSignal::open() {
  CATENA_ASSIGN_OR_RETURN(event_, make_event());
  return absl::OkStatus();
}

void SupervisorSignal::ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_.get(), &one, sizeof one));
}

void SupervisorSignal::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  ring();
}

bool SupervisorSignal::is_stopping() const {
  const std::scoped_lock lock(mutex_);
  return is_stopping_;
}

void SupervisorSignal::fail(Connection const& connection, std::string_view why) {
  {
    const std::scoped_lock lock(mutex_);
    if (failed_connection_ == &connection) {
      return;
    }
    failed_connection_ = &connection;
    failure_ = why;
  }
  ring();
}

void SupervisorSignal::acknowledge_locked() const {
  std::uint64_t rings = 0;
  static_cast<void>(::read(event_.get(), &rings, sizeof rings));
}

Status SupervisorSignal::acknowledge() {
  const std::scoped_lock lock(mutex_);
  if (is_stopping_) {
    return absl::CancelledError("the wait for its process was aborted");
  }
  acknowledge_locked();
  return absl::OkStatus();
}

Status SupervisorSignal::failure_of(Connection const* connection) {
  const std::scoped_lock lock(mutex_);
  const bool is_meant = failed_connection_ != nullptr && failed_connection_ == connection;
  failed_connection_ = nullptr;
  return is_meant ? absl::AbortedError(std::exchange(failure_, {})) : absl::OkStatus();
}

void SupervisorSignal::forget() {
  const std::scoped_lock lock(mutex_);
  failed_connection_ = nullptr;
  if (!is_stopping_) {
    acknowledge_locked();
  }
}

bool SupervisorSignal::wait(std::chrono::milliseconds time) {
  const Clock::time_point deadline = Clock::now() + time;
  for (;;) {
    if (is_stopping()) {
      return false;
    }
    if (Clock::now() >= deadline) {
      return true;
    }
    pollfd poll{event_.get(), POLLIN, 0};
    if (::poll(&poll, 1, poll_time(deadline)) > 0) {
      forget();
    }
  }
}

}  // namespace catena::nf_process
