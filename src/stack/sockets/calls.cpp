// SPDX-License-Identifier: Apache-2.0
// The calls of libc that the library takes: for a descriptor of the stack ours, for any other libc's own.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <new>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/epoll.hpp"
#include "stack/sockets/listeners.hpp"
#include "stack/sockets/notice.hpp"
#include "stack/sockets/options.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/settings.hpp"
#include "stack/sockets/transfer.hpp"
#include "stack/sockets/waiting.hpp"

namespace catena::sockets {
namespace {

/// Runs a call of ours as libc runs its own: no exception leaves it, errno changes with an error only.
template <class Call>
auto as_libc(Call call) -> decltype(call()) {
  const int kept = errno;
  decltype(call()) result = -ENOMEM;
  try {
    result = call();
  } catch (std::bad_alloc const&) {
  }
  errno = result < 0 ? static_cast<int>(-result) : kept;
  return result < 0 ? -1 : result;
}

/// own(descriptor) if `descriptor` is not null and this process and thread may use it; else passed().
template <class Target, class Own, class Passed>
auto dispatch(Target* descriptor, char const* name, Own own, Passed passed) -> decltype(passed()) {
  if (descriptor == nullptr) {
    return passed();
  }
  return as_libc([&]() -> decltype(passed()) {
    const int result = Attachment::get().check(*descriptor, name);
    return result < 0 ? result : own(*descriptor);
  });
}

int refuse(Notice notice, char const* name, int error) {
  tell(notice, name);
  errno = error;
  return -1;
}

bool is_connection(int fd) { return find_session(fd) != nullptr; }
bool is_socket(int fd) { return find_session(fd) != nullptr || find_listener(fd) != nullptr; }
bool is_own(int fd) { return fd >= 0 && fd == Attachment::descriptor(); }

/// Ends what is of the stack at `fd`. 0, or a negative error if another thread owns it.
int forget_descriptor(int fd) {
  Attachment::get().reap();
  Descriptor* descriptor = find(fd);
  if (descriptor == nullptr) {
    return 0;
  }
  const int result = Attachment::get().check(*descriptor, "close");
  if (result == -EOPNOTSUPP || (descriptor->kind == Kind::kSession && static_cast<Session*>(descriptor)->is_left)) {
    return result;
  }
  switch (descriptor->kind) {
    case Kind::kSession:
      close_session(static_cast<Session&>(*descriptor));
      break;
    case Kind::kListener:
      close_listener(static_cast<Listener&>(*descriptor));
      break;
    case Kind::kEpoll:
      close_epoll(static_cast<EpollSet&>(*descriptor));
      break;
  }
  return 0;
}

/// forget_descriptor(), then the call of libc that closes `fd`.
template <class Passed>
int close_then(int fd, Passed passed) {
  if (find(fd) != nullptr && as_libc([&] { return forget_descriptor(fd); }) < 0) {
    return -1;
  }
  return passed();
}

void forget_range(unsigned first, unsigned last) {
  const int kept = errno;
  for (Descriptor* one = next_from(static_cast<int>(first));
       one != nullptr && static_cast<unsigned>(one->number) <= last;) {
    const int number = one->number;
    forget_descriptor(number);
    one = next_from(number + 1);
  }
  errno = kept;
}

/// close_range(2) of all but the library's own descriptor.
int close_around(unsigned first, unsigned last, int flags) {
  const int descriptor = Attachment::descriptor();
  const auto own = static_cast<unsigned>(descriptor);
  if (descriptor < 0 || own < first || own > last) {
    return real().close_range(first, last, flags);
  }
  // the kernel refuses an empty range
  const int result = own > first ? real().close_range(first, own - 1, flags) : 0;
  return result == 0 && own < last ? real().close_range(own + 1, last, flags) : result;
}

/// True, with the call's error: `fd` may have no second number.
bool refuses_copy(int fd, char const* name) {
  if (is_socket(fd)) {
    refuse(Notice::kDup, name, EOPNOTSUPP);
    return true;
  }
  if (find_epoll(fd) != nullptr) {
    refuse(Notice::kDupEpoll, name, EOPNOTSUPP);
    return true;
  }
  return false;
}

/// dup2(2) and dup3(2) with another number.
template <class Passed>
int replace(int from, int to, char const* name, Passed passed) {
  if (refuses_copy(from, name)) {
    return -1;
  }
  return is_own(to) ? refuse(Notice::kOwnNumber, name, EBUSY) : close_then(to, passed);
}

iovec one_buffer(void const* bytes, std::size_t size) { return {const_cast<void*>(bytes), size}; }

ssize_t send_from(Session& session, void const* bytes, std::size_t size, int flags) {
  const iovec buffer = one_buffer(bytes, size);
  return transmit(session, &buffer, 1, flags);
}

ssize_t receive_into(Session& session, void* bytes, std::size_t size, int flags) {
  const iovec buffer = one_buffer(bytes, size);
  return receive(session, &buffer, 1, flags);
}

/// True if a message to another process has a connection or listening socket of the stack in it, or an epoll instance
/// with such.
bool passes_socket(msghdr const* message) {
  if (message == nullptr || message->msg_control == nullptr) {
    return false;
  }
  auto* mutable_message = const_cast<msghdr*>(message);  // CMSG_NXTHDR reads it
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(mutable_message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    auto const* numbers = reinterpret_cast<int const*>(CMSG_DATA(part));
    for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      if (find(numbers[i]) != nullptr) {
        return true;
      }
    }
  }
  return false;
}

int control_flags(Descriptor& descriptor, int command, long argument) {
  const int result = real().fcntl(descriptor.number, command, argument);
  if (result >= 0 && command == F_SETFL) {
    descriptor.is_nonblocking = (argument & O_NONBLOCK) != 0;
  }
  return result < 0 ? -errno : result;
}

Descriptor* find_socket(int fd) { return is_socket(fd) ? find(fd) : nullptr; }

/// Variables by which programs give their listening sockets to the program that they execute.
constexpr char const* kInheritances[] = {"NGINX=", "LISTEN_FDS="};

/// True if execve() would lose sockets of the stack that the program counts on.
bool loses_sockets(char* const* environment) {
  bool has_listener = false;
  for (Descriptor* one = next_from(0); one != nullptr; one = next_from(one->number + 1)) {
    if (one->kind == Kind::kSession && Attachment::get().check(*one, "exec") == 0) {
      return true;
    }
    has_listener = has_listener || one->kind == Kind::kListener;
  }
  for (char* const* variable = environment; has_listener && variable != nullptr && *variable != nullptr; ++variable) {
    for (char const* name : kInheritances) {
      if (std::string_view(*variable).starts_with(name)) {
        return true;
      }
    }
  }
  return false;
}

/// The error of a call of the exec family; 0: libc's call decides.
template <class Passed>
int execute(char const* name, char* const* environment, Passed passed) {
  if (settings().path[0] != '\0' && loses_sockets(environment)) {
    return refuse(Notice::kExec, name, EOPNOTSUPP);
  }
  return passed();
}

int wait_in(int epfd, epoll_event* events, int most, Deadline const& deadline, sigset_t const* mask, char const* name) {
  EpollSet* set = find_epoll(epfd);
  return as_libc([&] {
    const int result = Attachment::get().check(*set, name);
    return result < 0 ? result : wait_for_watches(*set, events, most, deadline, mask);
  });
}

}  // namespace
}  // namespace catena::sockets

// NOLINTBEGIN(readability-identifier-naming): the names are libc's
#define CATENA_CALL extern "C" __attribute__((visibility("default")))
using namespace catena::sockets;  // NOLINT

CATENA_CALL int bind(int fd, sockaddr const* address, socklen_t bytes) noexcept {
  if (find_listener(fd) == nullptr && !is_for_stack(fd, address, bytes)) {
    return real().bind(fd, address, bytes);
  }
  return as_libc([&] { return bind_listener(fd, address, bytes); });
}

CATENA_CALL int listen(int fd, int backlog) noexcept {
  return dispatch(
      find_listener(fd), "listen", [&](Listener& own) { return start_listening(own, backlog); },
      [&] { return real().listen(fd, backlog); });
}

CATENA_CALL int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  return dispatch(
      find_listener(fd), "accept4", [&](Listener& own) { return accept_session(own, address, bytes, flags); },
      [&] { return real().accept4(fd, address, bytes, flags); });
}

CATENA_CALL int accept(int fd, sockaddr* address, socklen_t* bytes) {
  return dispatch(
      find_listener(fd), "accept", [&](Listener& own) { return accept_session(own, address, bytes, 0); },
      [&] { return real().accept(fd, address, bytes); });
}

CATENA_CALL int connect(int fd, sockaddr const* address, socklen_t bytes) {
  if (is_connection(fd)) {
    errno = EISCONN;
    return -1;
  }
  if (Listener* own = find_listener(fd)) {
    if (own->is_listening) {
      errno = EISCONN;
      return -1;
    }
    if (as_libc([&] { return release_to_kernel(*own); }) < 0) {
      return -1;
    }
  }
  return real().connect(fd, address, bytes);
}

CATENA_CALL ssize_t recv(int fd, void* to, size_t size, int flags) {
  return dispatch(
      find_session(fd), "recv", [&](Session& own) { return receive_into(own, to, size, flags); },
      [&] { return real().recv(fd, to, size, flags); });
}

CATENA_CALL ssize_t recvfrom(int fd, void* to, size_t size, int flags, sockaddr* from, socklen_t* bytes) {
  return dispatch(
      find_session(fd), "recvfrom",
      [&](Session& own) {
        const ssize_t result = receive_into(own, to, size, flags);
        if (result >= 0 && bytes != nullptr) {
          *bytes = 0;  // as of TCP in the kernel: getpeername(2) knows
        }
        return result;
      },
      [&] { return real().recvfrom(fd, to, size, flags, from, bytes); });
}

CATENA_CALL ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return dispatch(
      find_session(fd), "recvmsg",
      [&](Session& own) {
        const ssize_t result = receive(own, message->msg_iov, message->msg_iovlen, flags);
        if (result >= 0) {
          message->msg_namelen = 0;
          message->msg_controllen = 0;
          message->msg_flags = 0;
        }
        return result;
      },
      [&] { return real().recvmsg(fd, message, flags); });
}

CATENA_CALL ssize_t read(int fd, void* to, size_t size) {
  return dispatch(
      find_session(fd), "read", [&](Session& own) { return receive_into(own, to, size, 0); },
      [&] { return real().read(fd, to, size); });
}

CATENA_CALL ssize_t readv(int fd, iovec const* buffers, int count) {
  return dispatch(
      find_session(fd), "readv",
      [&](Session& own) { return count < 0 ? -EINVAL : receive(own, buffers, static_cast<std::size_t>(count), 0); },
      [&] { return real().readv(fd, buffers, count); });
}

CATENA_CALL ssize_t send(int fd, void const* from, size_t size, int flags) {
  return dispatch(
      find_session(fd), "send", [&](Session& own) { return send_from(own, from, size, flags); },
      [&] { return real().send(fd, from, size, flags); });
}

CATENA_CALL ssize_t sendto(int fd, void const* from, size_t size, int flags, sockaddr const* to, socklen_t bytes) {
  return dispatch(
      find_session(fd), "sendto", [&](Session& own) { return send_from(own, from, size, flags); },
      [&] { return real().sendto(fd, from, size, flags, to, bytes); });
}

CATENA_CALL ssize_t sendmsg(int fd, msghdr const* message, int flags) {
  if (passes_socket(message)) {
    return refuse(Notice::kPassing, "sendmsg", EOPNOTSUPP);
  }
  return dispatch(
      find_session(fd), "sendmsg",
      [&](Session& own) { return transmit(own, message->msg_iov, message->msg_iovlen, flags); },
      [&] { return real().sendmsg(fd, message, flags); });
}

CATENA_CALL ssize_t write(int fd, void const* from, size_t size) {
  return dispatch(
      find_session(fd), "write", [&](Session& own) { return send_from(own, from, size, 0); },
      [&] { return real().write(fd, from, size); });
}

CATENA_CALL ssize_t writev(int fd, iovec const* buffers, int count) {
  return dispatch(
      find_session(fd), "writev",
      [&](Session& own) { return count < 0 ? -EINVAL : transmit(own, buffers, static_cast<std::size_t>(count), 0); },
      [&] { return real().writev(fd, buffers, count); });
}

CATENA_CALL ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return dispatch(
      find_session(to), "sendfile", [&](Session& own) { return transmit_file(own, from, offset, bytes); },
      [&] { return real().sendfile(to, from, offset, bytes); });
}

CATENA_CALL ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  return sendfile(to, from, offset, bytes);
}

CATENA_CALL int shutdown(int fd, int how) noexcept {
  if (Listener* own = find_listener(fd)) {
    // wakes nothing: the thread that shuts it down is the thread that accepts
    return dispatch(
        own, "shutdown",
        [](Listener& listener) {
          Attachment::get().unwant(listener);
          listener.is_listening = false;
          return 0;
        },
        [] { return 0; });
  }
  return dispatch(
      find_session(fd), "shutdown", [&](Session& own) { return shut_down(own, how); },
      [&] { return real().shutdown(fd, how); });
}

CATENA_CALL int close(int fd) {
  if (is_own(fd)) {
    errno = EBADF;  // the program has not opened it
    return -1;
  }
  if (Session* own = find_session(fd); own != nullptr && Attachment::get().check(*own, "close") == -EOPNOTSUPP) {
    return as_libc([&] { return Attachment::leave(*own); });
  }
  return close_then(fd, [&] { return real().close(fd); });
}

CATENA_CALL int close_range(unsigned first, unsigned last, int flags) noexcept {
  if ((static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) == 0) {
    forget_range(first, last);
  }
  return close_around(first, last, flags);
}

CATENA_CALL void closefrom(int first) noexcept {
  const int kept = errno;
  int from = std::max(first, 0);
  forget_range(static_cast<unsigned>(from), ~0U);
  if (const int own = Attachment::descriptor(); own >= from) {
    // one by one: libc's closefrom() has no end, and needs no close_range(2), which kernels before 5.9 do not have
    for (; from < own; ++from) {
      real().close(from);
    }
    ++from;
  }
  real().closefrom(from);
  errno = kept;
}

CATENA_CALL int dup(int fd) noexcept { return refuses_copy(fd, "dup") ? -1 : real().dup(fd); }

CATENA_CALL int dup2(int from, int to) noexcept {
  return from == to ? real().dup2(from, to) : replace(from, to, "dup2", [&] { return real().dup2(from, to); });
}

CATENA_CALL int dup3(int from, int to, int flags) noexcept {
  return replace(from, to, "dup3", [&] { return real().dup3(from, to, flags); });
}

CATENA_CALL ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  if (is_connection(from) || is_connection(to)) {
    return refuse(Notice::kUnknownCall, "splice", EINVAL);
  }
  return real().splice(from, from_offset, to, to_offset, bytes, flags);
}

CATENA_CALL int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  return is_connection(fd) ? refuse(Notice::kUnknownCall, "recvmmsg", EOPNOTSUPP)
                           : real().recvmmsg(fd, messages, count, flags, timeout);
}

CATENA_CALL int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return is_connection(fd) ? refuse(Notice::kUnknownCall, "sendmmsg", EOPNOTSUPP)
                           : real().sendmmsg(fd, messages, count, flags);
}

CATENA_CALL int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (Listener* own = find_listener(fd)) {
    return dispatch(
        own, "ioctl", [&](Listener& listener) { return control(listener, request, argument); }, [] { return 0; });
  }
  return dispatch(
      find_session(fd), "ioctl", [&](Session& own) { return control(own, request, argument); },
      [&] { return real().ioctl(fd, request, argument); });
}

CATENA_CALL int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && refuses_copy(fd, "fcntl(F_DUPFD)")) {
    return -1;
  }
  return dispatch(
      find_socket(fd), "fcntl", [&](Descriptor& own) { return control_flags(own, command, argument); },
      [&] { return real().fcntl(fd, command, argument); });
}

CATENA_CALL int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return fcntl(fd, command, argument);
}

CATENA_CALL int setsockopt(int fd, int level, int name, void const* value, socklen_t bytes) noexcept {
  if (Listener* own = find_listener(fd)) {
    return dispatch(
        own, "setsockopt", [&](Listener& listener) { return set_option(listener, level, name, value, bytes); },
        [] { return 0; });
  }
  return dispatch(
      find_session(fd), "setsockopt", [&](Session& own) { return set_option(own, level, name, value, bytes); },
      [&] { return real().setsockopt(fd, level, name, value, bytes); });
}

CATENA_CALL int getsockopt(int fd, int level, int name, void* value, socklen_t* bytes) noexcept {
  if (Listener* own = find_listener(fd)) {
    return dispatch(
        own, "getsockopt", [&](Listener& listener) { return get_option(listener, level, name, value, bytes); },
        [] { return 0; });
  }
  return dispatch(
      find_session(fd), "getsockopt", [&](Session& own) { return get_option(own, level, name, value, bytes); },
      [&] { return real().getsockopt(fd, level, name, value, bytes); });
}

CATENA_CALL int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  if (Listener* own = find_listener(fd)) {
    return as_libc([&] { return copy_address(own->address, address, bytes); });
  }
  return dispatch(
      find_session(fd), "getsockname", [&](Session& own) { return copy_address(own.local, address, bytes); },
      [&] { return real().getsockname(fd, address, bytes); });
}

CATENA_CALL int getpeername(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  return dispatch(
      find_session(fd), "getpeername", [&](Session& own) { return copy_address(own.peer, address, bytes); },
      [&] { return real().getpeername(fd, address, bytes); });
}

CATENA_CALL int epoll_ctl(int epfd, int operation, int fd, epoll_event* event) noexcept {
  return dispatch(
      find_socket(fd), "epoll_ctl", [&](Descriptor& own) { return change_watch(epfd, operation, own, event); },
      [&] { return real().epoll_ctl(epfd, operation, fd, event); });
}

CATENA_CALL int epoll_wait(int epfd, epoll_event* events, int most, int timeout) {
  return find_epoll(epfd) == nullptr ? real().epoll_wait(epfd, events, most, timeout)
                                     : wait_in(epfd, events, most, Deadline(timeout), nullptr, "epoll_wait");
}

CATENA_CALL int epoll_pwait(int epfd, epoll_event* events, int most, int timeout, sigset_t const* mask) {
  return find_epoll(epfd) == nullptr ? real().epoll_pwait(epfd, events, most, timeout, mask)
                                     : wait_in(epfd, events, most, Deadline(timeout), mask, "epoll_pwait");
}

CATENA_CALL int epoll_pwait2(int epfd, epoll_event* events, int most, timespec const* timeout, sigset_t const* mask) {
  return find_epoll(epfd) == nullptr ? real().epoll_pwait2(epfd, events, most, timeout, mask)
                                     : wait_in(epfd, events, most, Deadline(timeout), mask, "epoll_pwait2");
}

// libc declares the descriptors of poll(2) as written only, so a look at their numbers warns
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
CATENA_CALL int poll(pollfd* descriptors, nfds_t count, int timeout) {
  if (!has_own(descriptors, count)) {
    return real().poll(descriptors, count, timeout);
  }
  return as_libc([&] { return poll_all(descriptors, count, Deadline(timeout), nullptr); });
}

CATENA_CALL int ppoll(pollfd* descriptors, nfds_t count, timespec const* timeout, sigset_t const* mask) {
  if (!has_own(descriptors, count)) {
    return real().ppoll(descriptors, count, timeout, mask);
  }
  return as_libc([&] { return poll_all(descriptors, count, Deadline(timeout), mask); });
}
#pragma GCC diagnostic pop

CATENA_CALL int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  if (!has_own(count, readable, writable, exceptional)) {
    return real().select(count, readable, writable, exceptional, timeout);
  }
  const Deadline deadline(timeout == nullptr ? -1 : timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
  const int result = as_libc([&] { return select_all(count, readable, writable, exceptional, deadline, nullptr); });
  if (timeout != nullptr) {  // as Linux does
    const int left_ms = deadline.remaining_ms();
    *timeout = {left_ms / 1000, left_ms % 1000 * 1000L};
  }
  return result;
}

CATENA_CALL int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timespec const* timeout,
                        sigset_t const* mask) {
  if (!has_own(count, readable, writable, exceptional)) {
    return real().pselect(count, readable, writable, exceptional, timeout, mask);
  }
  return as_libc([&] { return select_all(count, readable, writable, exceptional, Deadline(timeout), mask); });
}

CATENA_CALL int execve(char const* path, char* const* arguments, char* const* environment) noexcept {
  return execute("execve", environment, [&] { return real().execve(path, arguments, environment); });
}

CATENA_CALL int execvpe(char const* path, char* const* arguments, char* const* environment) noexcept {
  return execute("execvpe", environment, [&] { return real().execvpe(path, arguments, environment); });
}

CATENA_CALL int execv(char const* path, char* const* arguments) noexcept {
  return execute("execv", environ, [&] { return real().execv(path, arguments); });
}

CATENA_CALL int execvp(char const* path, char* const* arguments) noexcept {
  return execute("execvp", environ, [&] { return real().execvp(path, arguments); });
}

CATENA_CALL int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return execute("fexecve", environment, [&] { return real().fexecve(fd, arguments, environment); });
}

/// A child of vfork(2) runs in its parent's memory, so what it closes would be closed in the table of the parent.
CATENA_CALL pid_t vfork() noexcept { return ::fork(); }

// Calls by which FORTIFY_SOURCE replaces others: they check the size of the buffer before.
extern "C" [[noreturn]] void __chk_fail();

CATENA_CALL ssize_t __read_chk(int fd, void* to, size_t size, size_t capacity) {
  return size > capacity ? (__chk_fail(), -1) : read(fd, to, size);
}

CATENA_CALL ssize_t __recv_chk(int fd, void* to, size_t size, size_t capacity, int flags) {
  return size > capacity ? (__chk_fail(), -1) : recv(fd, to, size, flags);
}

CATENA_CALL ssize_t __recvfrom_chk(int fd, void* to, size_t size, size_t capacity, int flags, sockaddr* from,
                                   socklen_t* bytes) {
  return size > capacity ? (__chk_fail(), -1) : recvfrom(fd, to, size, flags, from, bytes);
}

CATENA_CALL int __poll_chk(pollfd* descriptors, nfds_t count, int timeout, size_t capacity) {
  return capacity < count * sizeof(pollfd) ? (__chk_fail(), -1) : poll(descriptors, count, timeout);
}

CATENA_CALL int __ppoll_chk(pollfd* descriptors, nfds_t count, timespec const* timeout, sigset_t const* mask,
                            size_t capacity) {
  return capacity < count * sizeof(pollfd) ? (__chk_fail(), -1) : ppoll(descriptors, count, timeout, mask);
}

// liburing's calls, which enter the kernel by themselves afterwards: a program with them would not see connections.
namespace {
template <class... Arguments>
int refuse_ring(char const* name, Arguments... arguments) {
  if (settings().path[0] != '\0') {
    tell(Notice::kIoUring, name);
    return -EOPNOTSUPP;
  }
  auto* own = reinterpret_cast<int (*)(Arguments...)>(find_next(name));
  return own == nullptr ? -ENOSYS : own(arguments...);
}
}  // namespace

CATENA_CALL int io_uring_setup(unsigned entries, void* parameters) {
  return refuse_ring("io_uring_setup", entries, parameters);
}

CATENA_CALL int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  return refuse_ring("io_uring_queue_init", entries, ring, flags);
}

CATENA_CALL int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
  return refuse_ring("io_uring_queue_init_params", entries, ring, parameters);
}

CATENA_CALL int io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory, size_t bytes) {
  return refuse_ring("io_uring_queue_init_mem", entries, ring, parameters, memory, bytes);
}
// NOLINTEND(readability-identifier-naming)
