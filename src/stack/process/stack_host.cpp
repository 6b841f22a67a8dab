// SPDX-License-Identifier: Apache-2.0
#include "stack/process/stack_host.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ipc/frames.hpp"
#include "stack/segment/attach.hpp"

namespace catena::stack {
namespace {

/// Opens the stack's interface, unless the host would send the packets for the stack to another one.
Result<std::unique_ptr<TapPort>> open_interface(StackHostOptions const& options) {
  std::vector<InterfaceAddress> addresses;
  for (auto const& network : {options.process.settings.tcp.ipv4, options.process.settings.tcp.ipv6}) {
    if (network) {
      addresses.push_back({network->address, network->prefix});
    }
  }
  CATENA_RETURN_IF_ERROR(check_networks(options.interface, addresses));
  Result<std::unique_ptr<TapPort>> port = TapPort::open(options.interface);
  if (!absl::IsAlreadyExists(port.status())) {
    return port;
  }
  std::string text(port.status().message());
  std::string_view between = " with ";
  for (InterfaceAddress const& address : addresses_at(options.interface)) {
    text += concat(std::exchange(between, " and "), to_string(address));
  }
  return absl::AlreadyExistsError(text);
}

/// A process that has connected, by its number and by a descriptor.
struct Peer {
  pid_t pid = 0;
  FileDescriptor pidfd;  ///< empty: of a kernel before 6.5
};

/// nullopt: it has ended.
std::optional<Peer> peer_of(int connection) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD of Linux 6.5, which older headers do not have
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return std::nullopt;
  }
  int pidfd = -1;
  length = sizeof pidfd;
  if (::getsockopt(connection, SOL_SOCKET, kPeerPidfd, &pidfd, &length) != 0 && errno != ENOPROTOOPT) {
    return std::nullopt;
  }
  return Peer{credentials.pid, FileDescriptor(pidfd)};
}

/// Whether the number may be another process's by now.
bool has_ended(Peer const& peer) {
  pollfd end{.fd = peer.pidfd.get(), .events = POLLIN, .revents = 0};
  return peer.pidfd && ::poll(&end, 1, 0) != 0;
}

}  // namespace

Result<std::unique_ptr<StackHost>> StackHost::start(StackHostOptions options, FileDescriptor door) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<TapPort> port, open_interface(options));
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
    spdlog::error(
        "the stack's process has ended or does not answer; its connections are lost, and another one is started");
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
  const std::optional<Peer> peer = connection ? peer_of(connection.get()) : std::nullopt;
  if (!peer) {
    return;
  }
  RefusedBody refused{.error = EACCES};
  // what may_attach says is of this process only if it has not ended by then
  if ((!options_.may_attach || options_.may_attach(peer->pid)) && !has_ended(*peer)) {
    Status const admitted = process_->admit(connection.get(), peer->pid);
    if (admitted.ok()) {
      return;
    }
    refused.error = absl::IsResourceExhausted(admitted) ? ENOMEM : ECONNREFUSED;
    if (absl::IsUnavailable(admitted)) {
      restart();
    }
  }
  static_cast<void>(ipc::send_frame(connection.get(), kRefused, std::as_bytes(std::span(&refused, 1))));
}

}  // namespace catena::stack
