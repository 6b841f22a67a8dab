// SPDX-License-Identifier: Apache-2.0
#include "service/hang_up_watch.hpp"

#include <catena/core/text.hpp>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

namespace catena::service {
namespace {

constexpr std::uint64_t kEnd = 0;  // number of the descriptor that ends the thread

bool add_to(int epoll, int fd, std::uint32_t events, std::uint64_t number) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

HangUpWatch::Watched::Watched(HangUpWatch& watch, int socket) : watch_(watch), socket_(socket) {
  const std::lock_guard lock(watch_.mutex_);
  number_ = ++watch_.last_number_;
  // a hang-up comes whether or not it is asked for; where there is no memory to watch it, the request goes on
  if (add_to(watch_.epoll_.get(), socket, 0, number_)) {
    watch_.watched_.emplace(number_, Entry{socket, gone_});
  }
}

HangUpWatch::Watched::~Watched() {
  const std::lock_guard lock(watch_.mutex_);
  if (watch_.watched_.erase(number_) != 0) {
    ::epoll_ctl(watch_.epoll_.get(), EPOLL_CTL_DEL, socket_, nullptr);
  }
}

Result<std::unique_ptr<HangUpWatch>> HangUpWatch::start() {
  std::unique_ptr<HangUpWatch> watch(new HangUpWatch());
  watch->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  watch->end_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!watch->epoll_ || !watch->end_ || !add_to(watch->epoll_.get(), watch->end_.get(), EPOLLIN, kEnd)) {
    return absl::ResourceExhaustedError(concat("connections cannot be watched: ", std::strerror(errno)));
  }
  try {
    watch->thread_ = std::thread([own = watch.get()] { own->run(); });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread to watch connections: ", error.what()));
  }
  return watch;
}

HangUpWatch::~HangUpWatch() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    static_cast<void>(::write(end_.get(), &one, sizeof one));
    thread_.join();
  }
}

void HangUpWatch::run() {
  for (;;) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) < 1) {
      continue;
    }
    const std::uint64_t which = event.data.u64;  // epoll_event is packed
    if (which == kEnd) {
      return;
    }
    std::optional<std::stop_source> gone;
    {
      const std::lock_guard lock(mutex_);
      if (auto found = watched_.extract(which)) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found.mapped().socket, nullptr);
        gone = std::move(found.mapped().gone);
      }
    }
    if (gone) {
      gone->request_stop();
    }
  }
}

}  // namespace catena::service
