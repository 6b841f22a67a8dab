// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/waiting.hpp"

#include <cerrno>
#include <vector>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/listeners.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/transfer.hpp"

namespace catena::sockets {
namespace {

/// The listener or session with this number; an epoll instance is the kernel's to poll.
Descriptor* find_pollable(int number) {
  Descriptor* descriptor = find(number);
  return descriptor != nullptr && descriptor->kind != Kind::kEpoll ? descriptor : nullptr;
}

constexpr short kReadBits = POLLIN | POLLRDNORM | POLLHUP | POLLERR;
constexpr short kWriteBits = POLLOUT | POLLWRNORM | POLLERR;

bool is_in(int number, fd_set const* set) { return set != nullptr && FD_ISSET(number, set); }

/// Keeps the members of `set` with one of `bits`. Returns their number.
int keep(fd_set* set, std::vector<pollfd> const& polled, short asked, short bits) {
  int kept = 0;
  if (set == nullptr) {
    return 0;
  }
  for (pollfd const& one : polled) {
    if ((one.events & asked) == 0) {
      continue;
    }
    if ((one.revents & bits) != 0) {
      ++kept;
    } else {
      FD_CLR(one.fd, set);
    }
  }
  return kept;
}

}  // namespace

std::uint32_t state_of(Descriptor& descriptor, std::uint32_t asked) {
  switch (descriptor.kind) {
    case Kind::kSession:
      return poll_state(static_cast<Session&>(descriptor), asked);
    case Kind::kListener:
      return has_waiting(static_cast<Listener&>(descriptor)) ? POLLIN | POLLRDNORM : 0;
    case Kind::kEpoll:
      break;
  }
  return 0;
}

bool has_own(pollfd const* descriptors, nfds_t count) {
  for (nfds_t i = 0; i < count; ++i) {
    if (find_pollable(descriptors[i].fd) != nullptr) {
      return true;
    }
  }
  return false;
}

bool has_own(int count, fd_set const* readable, fd_set const* writable, fd_set const* exceptional) {
  for (int number = 0; number < count && number < FD_SETSIZE; ++number) {
    if (find_pollable(number) != nullptr &&
        (is_in(number, readable) || is_in(number, writable) || is_in(number, exceptional))) {
      return true;
    }
  }
  return false;
}

int poll_all(pollfd* descriptors, nfds_t count, Deadline const& deadline, sigset_t const* mask) {
  Attachment& attachment = Attachment::get();
  std::vector<pollfd> others(count + 1);  // with the attachment's descriptor
  for (;;) {
    const bool has_news = attachment.pump() > 0;
    const std::uint32_t pumped = attachment.number();
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
      others[i] = {descriptors[i].fd, descriptors[i].events, 0};
      descriptors[i].revents = 0;
      Descriptor* own = find_pollable(descriptors[i].fd);
      if (own == nullptr) {
        continue;
      }
      others[i].fd = -1;
      if (const int result = attachment.check(*own, "poll"); result == -EBADF) {
        descriptors[i].revents = POLLNVAL;
      } else if (result < 0) {
        return result;
      } else {
        const auto asked = static_cast<std::uint16_t>(descriptors[i].events);
        descriptors[i].revents = static_cast<short>(state_of(*own, asked) & (asked | POLLERR | POLLHUP));
      }
      ready += descriptors[i].revents != 0 ? 1 : 0;
    }
    if (ready == 0 && (has_news || attachment.number() != pumped)) {
      continue;  // a sleep needs a pump() without events, of this attachment: state_of() may have made or lost it
    }
    if (ready == 0) {
      attachment.send_held();
    }
    others[count] = {attachment.stack() == nullptr ? -1 : ::catena_stack_descriptor(attachment.stack()), POLLIN, 0};
    const int timeout_ms = ready > 0 ? 0 : deadline.remaining_ms(attachment.sleep_limit_ms());
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
    const int got = real().ppoll(others.data(), others.size(), timeout_ms < 0 ? nullptr : &timeout, mask);
    if (got < 0 && ready == 0) {
      return -errno;
    }
    for (nfds_t i = 0; i < count; ++i) {
      if (others[i].fd >= 0 && others[i].revents != 0) {
        descriptors[i].revents = others[i].revents;
        ++ready;
      }
    }
    if (ready > 0) {
      return ready;
    }
    if (got == 0 && deadline.is_over()) {
      return 0;
    }
  }
}

int select_all(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, Deadline const& deadline,
               sigset_t const* mask) {
  std::vector<pollfd> polled;
  for (int number = 0; number < count && number < FD_SETSIZE; ++number) {
    const int events = (is_in(number, readable) ? POLLIN : 0) | (is_in(number, writable) ? POLLOUT : 0) |
                       (is_in(number, exceptional) ? POLLPRI : 0);
    if (events != 0) {
      polled.push_back({number, static_cast<short>(events), 0});
    }
  }
  const int result = poll_all(polled.data(), polled.size(), deadline, mask);
  if (result < 0) {
    return result;
  }
  for (pollfd const& one : polled) {
    if ((one.revents & POLLNVAL) != 0) {
      return -EBADF;
    }
  }
  return keep(readable, polled, POLLIN, kReadBits) + keep(writable, polled, POLLOUT, kWriteBits) +
         keep(exceptional, polled, POLLPRI, POLLPRI);
}

}  // namespace catena::sockets
