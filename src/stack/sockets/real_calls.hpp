// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace catena::sockets {

// clang-format off
/// The intercepted calls of libc. calls.cpp defines each; the library shows their names and no others.
#define CATENA_INTERCEPTED(CALL) \
  CALL(bind) CALL(listen) CALL(accept) CALL(accept4) CALL(connect) CALL(shutdown) \
  CALL(recv) CALL(recvfrom) CALL(recvmsg) CALL(recvmmsg) CALL(read) CALL(readv) \
  CALL(send) CALL(sendto) CALL(sendmsg) CALL(sendmmsg) CALL(write) CALL(writev) \
  CALL(sendfile) CALL(sendfile64) CALL(splice) \
  CALL(close) CALL(close_range) CALL(closefrom) CALL(dup) CALL(dup2) CALL(dup3) \
  CALL(ioctl) CALL(fcntl) CALL(fcntl64) CALL(setsockopt) CALL(getsockopt) CALL(getsockname) CALL(getpeername) \
  CALL(epoll_ctl) CALL(epoll_wait) CALL(epoll_pwait) CALL(epoll_pwait2) \
  CALL(poll) CALL(ppoll) CALL(select) CALL(pselect) \
  CALL(execve) CALL(execv) CALL(execvp) CALL(execvpe) CALL(fexecve)
// clang-format on

/// libc's own definitions of the intercepted calls.
struct RealCalls {
#define CATENA_MEMBER(name) decltype(&::name) name = nullptr;
  CATENA_INTERCEPTED(CATENA_MEMBER)
#undef CATENA_MEMBER
};

/// Finds them at the first call. Any thread; async-signal-safe after the first call.
RealCalls const& real();

/// The next definition of `name` after this library's; null: no other library has it.
void* find_next(char const* name);

}  // namespace catena::sockets
