// SPDX-License-Identifier: Apache-2.0
#include "stack/process/stack_host.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ipc/frames.hpp"
#include "stack/segment/attach.hpp"

namespace catena::stack {

Result<std::unique_ptr<StackHost>> StackHost::start(StackHostOptions options, FileDescriptor door) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<TapPort> port, TapPort::open(options.interface));
  CATENA_RETURN_IF_ERROR(bring_up(options.interface, options.addresses));
  CATENA_ASSIGN_OR_RETURN(auto process, StackProcess::start(options.process, port->descriptor()));
  return std::unique_ptr<StackHost>(
      new StackHost(std::move(options), std::move(door), std::move(port), std::move(process)));
}

StackHost::StackHost(StackHostOptions options, FileDescriptor door, std::unique_ptr<TapPort> port,
                     std::unique_ptr<StackProcess> process)
    : options_(std::move(options)),
      door_(std::move(door)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      port_(std::move(port)),
      process_(std::move(process)),
      thread_([this] { serve(); }) {}

StackHost::~StackHost() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

StackReport StackHost::report() const {
  const std::lock_guard lock(mutex_);
  return process_ == nullptr ? StackReport{} : process_->report();
}

void StackHost::serve() {
  for (;;) {
    const int ended = process_ == nullptr ? -1 : process_->pidfd();
    std::array<pollfd, 3> polls{
        {{stop_.get(), POLLIN, 0}, {ended, POLLIN, 0}, {door_.get(), ended < 0 ? short{0} : short{POLLIN}, 0}}};
    constexpr int kRetryMs = 200;
    ::poll(polls.data(), polls.size(), ended < 0 ? kRetryMs : -1);
    if (polls[0].revents != 0) {
      return;
    }
    if (ended < 0 || polls[1].revents != 0) {
      restart();
    } else if (polls[2].revents != 0) {
      let_in();
    }
  }
}

void StackHost::restart() {
  std::unique_ptr<StackProcess> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::exchange(process_, nullptr);
  }
  if (last != nullptr) {
    spdlog::error("the stack's process has ended; its connections are lost, and another one is started");
    last.reset();
  }
  Result<std::unique_ptr<StackProcess>> next = StackProcess::start(options_.process, port_->descriptor());
  if (!next.ok()) {
    spdlog::error("no stack: {}", std::string(next.status().message()));
    return;
  }
  ++restarts_;
  const std::lock_guard lock(mutex_);
  process_ = *std::move(next);
}

void StackHost::let_in() {
  FileDescriptor connection(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ucred peer{};
  socklen_t length = sizeof peer;
  if (!connection || ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return;
  }
  RefusedBody refused{.error = EACCES};
  if (!options_.may_attach || options_.may_attach(peer.pid)) {
    Status const admitted = process_->admit(connection.get());
    if (admitted.ok()) {
      return;
    }
    refused.error = absl::IsResourceExhausted(admitted) ? ENOMEM : ECONNREFUSED;
  }
  static_cast<void>(ipc::send_frame(connection.get(), kRefused, std::as_bytes(std::span(&refused, 1))));
}

}  // namespace catena::stack
