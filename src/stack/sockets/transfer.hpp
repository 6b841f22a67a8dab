// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include "stack/sockets/descriptors.hpp"

/// Bytes of connections. Numbers of bytes, or negative errors of errno.h, are returned.
namespace catena::sockets {

/// As recvmsg(2) and readv(2): into `count` buffers. Waits if the socket blocks. 0: the peer sends no more.
ssize_t receive(Session& session, iovec const* buffers, std::size_t count, int flags);
/// As sendmsg(2) and writev(2). A blocking socket sends all.
ssize_t transmit(Session& session, iovec const* buffers, std::size_t count, int flags);
/// As sendfile(2): the file is read straight into the send buffer.
ssize_t transmit_file(Session& session, int file, off_t* offset, std::size_t bytes);

/// As shutdown(2).
int shut_down(Session& session, int how);
/// Ends the connection. The kernel's socket stays open.
void close_session(Session& session);

/// The true bits of poll(2) and epoll(7). If the session has no space and `asked` has
/// POLLOUT, the stack reports space.
std::uint32_t poll_state(Session& session, std::uint32_t asked);
/// The value of SO_ERROR, which clears it.
int take_error(Session& session);
std::int64_t readable_bytes(Session& session);
std::int64_t unsent_bytes(Session& session);

}  // namespace catena::sockets
