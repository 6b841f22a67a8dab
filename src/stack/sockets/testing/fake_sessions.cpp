// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/testing/fake_sessions.hpp"

#include <catena/session.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "stack/sockets/real_calls.hpp"

using catena::sockets::kFakeBufferBytes;
using catena::sockets::real;

namespace {

bool has_stack = true;
bool is_full = false;
int incarnation = 0;

struct Buffer {
  std::unique_ptr<char[]> bytes = std::make_unique<char[]>(kFakeBufferBytes);
  std::uint64_t head = 0;  // written
  std::uint64_t tail = 0;  // read
  std::size_t used() const { return static_cast<std::size_t>(head - tail); }
  std::size_t free() const { return kFakeBufferBytes - used(); }
  char* at(std::uint64_t place) { return bytes.get() + place % kFakeBufferBytes; }
  std::size_t to_wrap(std::uint64_t place) const { return kFakeBufferBytes - place % kFakeBufferBytes; }
};

struct Connection {
  int fd = -1;
  Buffer received;
  Buffer unsent;
  bool has_peer_closed = false;
  bool is_reset = false;
  bool is_shut = false;
  bool has_sent_end = false;

  void fill() {
    while (received.free() > 0 && !has_peer_closed && !is_reset) {
      const std::size_t most = std::min(received.free(), received.to_wrap(received.head));
      const ssize_t got = real().recv(fd, received.at(received.head), most, MSG_DONTWAIT);
      if (got < 0) {
        is_reset = errno != EAGAIN;
        return;
      }
      has_peer_closed = got == 0;
      received.head += static_cast<std::uint64_t>(got);
    }
  }
  void flush() {
    while (unsent.used() > 0 && !is_reset) {
      const std::size_t most = std::min(unsent.used(), unsent.to_wrap(unsent.tail));
      const ssize_t sent = real().send(fd, unsent.at(unsent.tail), most, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) {
        is_reset = errno != EAGAIN;
        return;
      }
      unsent.tail += static_cast<std::uint64_t>(sent);
    }
    if (is_shut && unsent.used() == 0 && !has_sent_end) {
      has_sent_end = true;
      real().shutdown(fd, SHUT_WR);
    }
  }
  std::uint32_t state() const {
    if (is_reset) {
      return CATENA_RESET;
    }
    const int bits = (received.used() > 0 || has_peer_closed ? CATENA_READABLE : 0) |
                     (unsent.free() > 0 && !is_shut ? CATENA_WRITABLE : 0) | (has_peer_closed ? CATENA_PEER_CLOSED : 0);
    return static_cast<std::uint32_t>(bits);
  }
};

}  // namespace

struct catena_stack {
  int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  int wake_up = -1;  ///< an instance that has `epoll`, once per arm(): as a stack, which wakes sleepers only
  int incarnation = ::incarnation;
  catena_session next = 1;
  std::map<std::uint16_t, int> ports;
  std::map<catena_session, Connection> connections;

  catena_stack() {
    constexpr int kLowest = 512;  // as a stack's: above the numbers of most programs
    const int low = ::epoll_create1(EPOLL_CLOEXEC);
    wake_up = real().fcntl(low, F_DUPFD_CLOEXEC, kLowest);
    real().close(low);
    epoll_event none{};
    real().epoll_ctl(wake_up, EPOLL_CTL_ADD, epoll, &none);
  }
  void arm() const {
    epoll_event once{};
    once.events = EPOLLIN | EPOLLONESHOT;
    real().epoll_ctl(wake_up, EPOLL_CTL_MOD, epoll, &once);
  }
  void clear_wake_up() const {
    epoll_event event{};
    real().epoll_wait(wake_up, &event, 1, 0);
  }
  bool is_stale() const { return !has_stack || incarnation != ::incarnation; }
  Connection* find(catena_session session) {
    const auto found = connections.find(session);
    return found == connections.end() ? nullptr : &found->second;
  }
  void end(catena_session session) {
    real().close(find(session)->fd);
    connections.erase(session);
  }
};

namespace {

constexpr std::uint64_t kPortMark = std::uint64_t{1} << 63;

void reset(int fd) {
  const linger now{1, 0};
  real().setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/// Runs `call` on a live connection; its error otherwise.
template <class Call>
std::int64_t on(catena_stack* stack, catena_session session, Call call) {
  if (stack->is_stale()) {
    return -ESTALE;
  }
  Connection* connection = stack->find(session);
  if (connection == nullptr) {
    return -EBADF;
  }
  return call(*connection);
}

}  // namespace

namespace catena::sockets {

void kill_fake_stack() { has_stack = false; }
void fill_fake_stack() { is_full = true; }
void start_fake_stack() {
  has_stack = true;
  is_full = false;
  ++::incarnation;
}

}  // namespace catena::sockets

int catena_stack_attach(char const*, catena_stack** stack) {
  if (!has_stack) {
    return -ECONNREFUSED;
  }
  if (is_full) {
    return -EUSERS;
  }
  *stack = new catena_stack;
  return 0;
}

void catena_stack_detach(catena_stack* stack) {
  for (auto& [session, connection] : stack->connections) {
    reset(connection.fd);
    real().close(connection.fd);
  }
  for (auto const& [port, fd] : stack->ports) {
    real().close(fd);
  }
  real().close(stack->wake_up);
  real().close(stack->epoll);
  delete stack;
}

int catena_stack_descriptor(catena_stack const* stack) { return stack->wake_up; }

int catena_stack_events(catena_stack* stack, catena_event* events, int most) {
  if (stack->is_stale()) {
    return -ESTALE;
  }
  stack->clear_wake_up();
  epoll_event changed[64];
  const int got = real().epoll_wait(stack->epoll, changed, std::min(most, 64), 0);
  if (got <= 0) {
    stack->arm();
    return 0;
  }
  int count = 0;
  for (int i = 0; i < got; ++i) {
    if ((changed[i].data.u64 & kPortMark) != 0) {
      events[count++] = {0, CATENA_ACCEPTABLE, static_cast<std::uint16_t>(changed[i].data.u64)};
      continue;
    }
    Connection* connection = stack->find(changed[i].data.u64);
    if (connection == nullptr) {
      continue;
    }
    connection->fill();
    connection->flush();
    events[count++] = {changed[i].data.u64, connection->state(), 0};
  }
  return count;
}

int catena_stack_wait(catena_stack* stack, int timeout_ms) {
  if (stack->is_stale()) {
    return -ESTALE;
  }
  stack->arm();
  pollfd readable{stack->wake_up, POLLIN, 0};
  const int got = real().poll(&readable, 1, timeout_ms);
  return got < 0 ? -errno : got;
}

int catena_stack_listen(catena_stack* stack, uint16_t port, int backlog) {
  if (stack->is_stale()) {
    return -ESTALE;
  }
  if (stack->ports.contains(port)) {
    return -EADDRINUSE;
  }
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  const int no = 0;
  real().setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  real().setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  real().setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(port);
  if (real().bind(fd, reinterpret_cast<sockaddr const*>(&any), sizeof any) != 0 || real().listen(fd, backlog) != 0) {
    const int error = errno;
    real().close(fd);
    return -error;
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kPortMark | port;
  real().epoll_ctl(stack->epoll, EPOLL_CTL_ADD, fd, &event);
  stack->ports[port] = fd;
  return 0;
}

int catena_stack_unlisten(catena_stack* stack, uint16_t port) {
  if (!stack->ports.contains(port)) {
    return -EINVAL;
  }
  real().close(stack->ports[port]);
  stack->ports.erase(port);
  return 0;
}

int catena_stack_accept(catena_stack* stack, uint16_t port, catena_session* session) {
  if (stack->is_stale()) {
    return -ESTALE;
  }
  if (!stack->ports.contains(port)) {
    return -EINVAL;
  }
  const int fd = real().accept4(stack->ports[port], nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  const int yes = 1;
  real().setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  *session = stack->next++;
  stack->connections[*session].fd = fd;
  stack->connections[*session].fill();
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = *session;
  real().epoll_ctl(stack->epoll, EPOLL_CTL_ADD, fd, &event);
  return 0;
}

uint32_t catena_session_state(catena_stack* stack, catena_session session) {
  Connection const* connection = stack->is_stale() ? nullptr : stack->find(session);
  return connection == nullptr ? static_cast<std::uint32_t>(CATENA_RESET) : connection->state();
}

int catena_session_endpoints(catena_stack* stack, catena_session session, sockaddr_storage* local,
                             sockaddr_storage* peer) {
  return static_cast<int>(on(stack, session, [&](Connection& connection) {
    // as the stack shows them: IPv4 as IPv4
    const auto show = [](sockaddr_storage* address, auto call, int fd) {
      if (address == nullptr) {
        return;
      }
      sockaddr_in6 v6{};
      socklen_t bytes = sizeof v6;
      call(fd, reinterpret_cast<sockaddr*>(&v6), &bytes);
      if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(*address);
        v4.sin_family = AF_INET;
        v4.sin_port = v6.sin6_port;
        std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, 4);
      } else {
        std::memcpy(address, &v6, sizeof v6);
      }
    };
    show(local, real().getsockname, connection.fd);
    show(peer, real().getpeername, connection.fd);
    return 0;
  }));
}

int64_t catena_session_peek(catena_stack* stack, catena_session session, void const** bytes) {
  return on(stack, session, [&](Connection& connection) -> std::int64_t {
    Buffer& from = connection.received;
    if (connection.is_reset) {
      return -ECONNRESET;
    }
    if (from.used() == 0) {
      return connection.has_peer_closed ? 0 : -EAGAIN;
    }
    *bytes = from.at(from.tail);
    return static_cast<std::int64_t>(std::min(from.used(), from.to_wrap(from.tail)));
  });
}

int64_t catena_session_readable(catena_stack* stack, catena_session session) {
  return on(stack, session, [](Connection& connection) -> std::int64_t {
    const auto used = static_cast<std::int64_t>(connection.received.used());
    return connection.is_reset ? -ECONNRESET : used > 0 || connection.has_peer_closed ? used : -EAGAIN;
  });
}

int catena_session_consume(catena_stack* stack, catena_session session, size_t count) {
  return static_cast<int>(on(stack, session, [&](Connection& connection) {
    if (count > connection.received.used()) {
      return -EINVAL;
    }
    connection.received.tail += count;
    connection.fill();
    return 0;
  }));
}

int64_t catena_session_reserve(catena_stack* stack, catena_session session, void** bytes) {
  return on(stack, session, [&](Connection& connection) -> std::int64_t {
    Buffer& to = connection.unsent;
    if (connection.is_reset || connection.is_shut) {
      return connection.is_reset ? -ECONNRESET : -EPIPE;
    }
    if (to.free() == 0) {
      return -EAGAIN;
    }
    *bytes = to.at(to.head);
    return static_cast<std::int64_t>(std::min(to.free(), to.to_wrap(to.head)));
  });
}

int catena_session_commit(catena_stack* stack, catena_session session, size_t count) {
  return static_cast<int>(on(stack, session, [&](Connection& connection) {
    if (count > connection.unsent.free()) {
      return -EINVAL;
    }
    connection.unsent.head += count;
    connection.flush();
    return 0;
  }));
}

int64_t catena_session_unsent(catena_stack* stack, catena_session session) {
  return on(stack, session, [](Connection& connection) { return static_cast<std::int64_t>(connection.unsent.used()); });
}

int catena_session_shutdown(catena_stack* stack, catena_session session) {
  return static_cast<int>(on(stack, session, [](Connection& connection) {
    connection.is_shut = true;
    connection.flush();
    return connection.is_reset ? -ECONNRESET : 0;
  }));
}

int catena_session_close(catena_stack* stack, catena_session session) {
  return static_cast<int>(on(stack, session, [&](Connection& connection) {
    connection.flush();
    stack->end(session);
    return 0;
  }));
}

int catena_session_abort(catena_stack* stack, catena_session session) {
  return static_cast<int>(on(stack, session, [&](Connection& connection) {
    reset(connection.fd);
    stack->end(session);
    return 0;
  }));
}
