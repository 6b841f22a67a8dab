// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/listeners.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/epoll.hpp"
#include "stack/sockets/notice.hpp"
#include "stack/sockets/options.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/settings.hpp"

namespace catena::sockets {
namespace {

// an array in place of a list: threads may bind at once, and no lock may be held in fork(2)
constexpr std::size_t kMaxListeners = 1024;
std::array<std::atomic<Listener*>, kMaxListeners> listeners{};
std::atomic<std::size_t> listeners_end{0};

bool remember(Listener* listener) {
  for (std::size_t i = 0; i < kMaxListeners; ++i) {
    Listener* expected = nullptr;
    if (listeners[i].compare_exchange_strong(expected, listener)) {
      std::size_t end = listeners_end.load();
      while (end <= i && !listeners_end.compare_exchange_weak(end, i + 1)) {
      }
      return true;
    }
  }
  return false;
}

in6_addr as_v6(sockaddr_storage const& address) {
  if (address.ss_family == AF_INET6) {
    return reinterpret_cast<sockaddr_in6 const&>(address).sin6_addr;
  }
  in6_addr mapped{};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xFF;
  std::memcpy(mapped.s6_addr + 12, &reinterpret_cast<sockaddr_in const&>(address).sin_addr, 4);
  return mapped;
}

in_port_t port_of(sockaddr_storage const& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 const&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in const&>(address).sin_port;
}

/// An IPv6 socket shows IPv4 addresses mapped into its own family (RFC 3493, 3.7).
sockaddr_storage in_family(sockaddr_storage const& address, sa_family_t family) {
  if (address.ss_family == family || family != AF_INET6) {
    return address;
  }
  sockaddr_storage mapped{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(mapped);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port_of(address);
  v6.sin6_addr = as_v6(address);
  return mapped;
}

bool is_wildcard(sockaddr_storage const& address) {
  const in6_addr v6 = as_v6(address);
  return address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in const&>(address).sin_addr.s_addr == INADDR_ANY
                                      : IN6_IS_ADDR_UNSPECIFIED(&v6) != 0;
}

/// How well a connection to `local` suits: the kernel prefers an address to any address, and a socket of the same
/// family. 0: not at all.
int suitability(Listener const& listener, sockaddr_storage const& local) {
  const bool is_same_family = listener.address.ss_family == local.ss_family;
  if (!listener.is_listening || (!is_same_family && (local.ss_family != AF_INET || listener.is_v6_only))) {
    return 0;
  }
  const bool is_any = is_wildcard(listener.address);
  const in6_addr own = as_v6(listener.address);
  const in6_addr wanted = as_v6(local);
  if (!is_any && std::memcmp(&own, &wanted, sizeof own) != 0) {
    return 0;
  }
  return 1 + (is_any ? 0 : 4) + (is_same_family ? 2 : 0) + (listener.is_wanted ? 8 : 0);
}

/// The socket of this process that takes the connection; null: no socket does.
Listener* find_target(std::uint16_t port, sockaddr_storage const& local) {
  Listener* best = nullptr;
  int best_suitability = 0;
  for_each_listener([&](Listener& one) {
    const int own = one.port == port ? suitability(one, local) : 0;
    if (own > best_suitability) {
      best = &one;
      best_suitability = own;
    }
  });
  return best;
}

/// Takes connections from the stack until one is for `listener`, which then waits in it. 0, -EAGAIN.
int take(Listener& listener) {
  Attachment& attachment = Attachment::get();
  while (listener.waiting.empty()) {
    if (attachment.stack() == nullptr || !listener.is_wanted) {
      return -EAGAIN;
    }
    catena_session session = 0;
    const int result = ::catena_stack_accept(attachment.stack(), listener.port, &session);
    if (result == -ESTALE) {
      attachment.lose();
    }
    if (result < 0) {
      return -EAGAIN;
    }
    sockaddr_storage local{};
    Listener* target = ::catena_session_endpoints(attachment.stack(), session, &local, nullptr) == 0
                           ? find_target(listener.port, local)
                           : nullptr;
    if (target == nullptr) {
      ::catena_session_abort(attachment.stack(), session);  // as the kernel: no socket listens at this address
      continue;
    }
    target->waiting.push_back(session);
    if (target != &listener) {
      mark_ready(*target);
    }
  }
  return 0;
}

/// The connection that waits first, as a descriptor of the program.
int open_session(Listener& listener, sockaddr* address, socklen_t* bytes, int flags) {
  Attachment& attachment = Attachment::get();
  auto session = std::make_unique<Session>();
  session->kind = Kind::kSession;
  session->id = listener.waiting.front();
  session->is_nonblocking = (flags & SOCK_NONBLOCK) != 0;
  session->options = listener.options;
  const sa_family_t family = listener.address.ss_family;
  if (::catena_session_endpoints(attachment.stack(), session->id, &session->local, &session->peer) < 0) {
    listener.waiting.pop_front();
    return -ECONNABORTED;
  }
  session->local = in_family(session->local, family);
  session->peer = in_family(session->peer, family);
  if (address != nullptr) {
    if (const int result = copy_address(session->peer, address, bytes); result < 0) {
      return result;
    }
  }
  session->number = ::socket(family, SOCK_STREAM | flags, IPPROTO_TCP);
  if (session->number < 0) {
    return -errno;
  }
  if (!add(session.get())) {
    real().close(session->number);
    tell(Notice::kDescriptorTooHigh, "accept");
    return -EMFILE;
  }
  if (listener.options != Options{}) {
    copy_options(listener.number, session->number);
  }
  listener.waiting.pop_front();
  attachment.open(*session);
  return session.release()->number;
}

}  // namespace

bool is_for_stack(int number, sockaddr const* address, socklen_t bytes) {
  if (settings().path[0] == '\0' || address == nullptr) {
    return false;
  }
  const bool is_v4 = address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in);
  const bool is_v6 = address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6);
  if ((!is_v4 && !is_v6) ||
      !settings().ports.contains(ntohs(is_v4 ? reinterpret_cast<sockaddr_in const*>(address)->sin_port
                                             : reinterpret_cast<sockaddr_in6 const*>(address)->sin6_port))) {
    return false;
  }
  return kernel_option(number, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP &&
         kernel_option(number, SOL_SOCKET, SO_DOMAIN) == address->sa_family;
}

int bind_listener(int number, sockaddr const* address, socklen_t bytes) {
  if (find(number) != nullptr) {
    return -EINVAL;  // bound already
  }
  auto listener = std::make_unique<Listener>();
  listener->kind = Kind::kListener;
  listener->number = number;
  std::memcpy(&listener->address, address, std::min<std::size_t>(bytes, sizeof listener->address));
  listener->port = ntohs(port_of(listener->address));
  bool is_taken = false;
  for_each_listener([&](Listener& one) {
    is_taken = is_taken || (one.port == listener->port && one.address.ss_family == listener->address.ss_family &&
                            (is_wildcard(one.address) || is_wildcard(listener->address) ||
                             std::memcmp(as_v6(one.address).s6_addr, as_v6(listener->address).s6_addr, 16) == 0) &&
                            (kernel_option(number, SOL_SOCKET, SO_REUSEPORT) != 1 ||
                             kernel_option(one.number, SOL_SOCKET, SO_REUSEPORT) != 1) &&
                            (one.is_listening || kernel_option(number, SOL_SOCKET, SO_REUSEADDR) != 1));
  });
  if (is_taken) {
    return -EADDRINUSE;
  }
  if (!add(listener.get())) {
    tell(Notice::kDescriptorTooHigh, "bind");
    return -EADDRNOTAVAIL;
  }
  if (!remember(listener.get())) {
    tell(Notice::kTooManyListeners, "1024");
    remove(listener.release());
    return -EADDRNOTAVAIL;
  }
  static_cast<void>(listener.release());
  return 0;
}

int start_listening(Listener& listener, int backlog) {
  listener.backlog = std::clamp(backlog, 1, static_cast<int>(CATENA_MAX_BACKLOG));
  if (listener.is_listening) {
    return 0;
  }
  listener.is_v6_only = kernel_option(listener.number, IPPROTO_IPV6, IPV6_V6ONLY) == 1;
  listener.is_nonblocking = (real().fcntl(listener.number, F_GETFL) & O_NONBLOCK) != 0;
  listener.options = read_options(listener.number);
  listener.is_listening = true;
  return 0;
}

int accept_session(Listener& listener, sockaddr* address, socklen_t* bytes, int flags) {
  if (!listener.is_listening || (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0) {
    return -EINVAL;
  }
  Attachment& attachment = Attachment::get();
  attachment.reap();
  attachment.want(listener);
  const Deadline deadline(listener.options.receive_ms);
  while (take(listener) < 0) {
    const int result = listener.is_nonblocking ? (attachment.pump() > 0 ? 0 : -EAGAIN) : attachment.wait(deadline);
    if (result < 0) {
      return result == -ETIMEDOUT ? -EAGAIN : result;
    }
  }
  return open_session(listener, address, bytes, flags);
}

void close_listener(Listener& listener) {
  Attachment::get().unwant(listener);
  const std::size_t end = listeners_end.load();
  for (std::size_t i = 0; i < end; ++i) {
    Listener* expected = &listener;
    listeners[i].compare_exchange_strong(expected, nullptr);
  }
  remove(&listener);
}

int release_to_kernel(Listener& listener) {
  const int number = listener.number;
  const sockaddr_storage address = listener.address;
  close_listener(listener);
  const socklen_t bytes = address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return real().bind(number, reinterpret_cast<sockaddr const*>(&address), bytes) < 0 ? -errno : 0;
}

bool has_waiting(Listener& listener) {
  if (!listener.is_listening) {
    return false;
  }
  Attachment::get().want(listener);
  return take(listener) == 0;
}

bool has_wanted(std::uint16_t port) {
  bool has = false;
  for_each_listener([&](Listener& one) { has = has || (one.is_wanted && one.port == port); });
  return has;
}

void mark_ready_at_port(std::uint16_t port) {
  for_each_listener([&](Listener& one) {
    if (one.is_wanted && one.port == port) {
      mark_ready(one);
    }
  });
}

void for_each_listener(std::function<void(Listener&)> const& call) {
  const std::size_t end = listeners_end.load();
  for (std::size_t i = 0; i < end; ++i) {
    if (Listener* one = listeners[i].load(std::memory_order_acquire)) {
      call(*one);
    }
  }
}

void for_each_wanted_port(std::function<void(Listener&)> const& call) {
  std::deque<std::uint16_t> done;
  for_each_listener([&](Listener& one) {
    if (one.is_wanted && std::find(done.begin(), done.end(), one.port) == done.end()) {
      done.push_back(one.port);
      call(one);
    }
  });
}

int copy_address(sockaddr_storage const& from, sockaddr* to, socklen_t* bytes) {
  if (to == nullptr || bytes == nullptr) {
    return -EFAULT;
  }
  if (*bytes > sizeof from && static_cast<int>(*bytes) < 0) {
    return -EINVAL;
  }
  const socklen_t own = from.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(to, &from, std::min(*bytes, own));
  *bytes = own;
  return 0;
}

}  // namespace catena::sockets
