// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "stack/sockets/descriptors.hpp"

namespace catena::sockets {

/// All functions return 0, a descriptor, or a negative error of errno.h.

/// True: bind(2) of this socket is the stack's: TCP, and a port of CATENA_STACK_PORTS.
bool is_for_stack(int number, sockaddr const* address, socklen_t bytes);
/// -EADDRINUSE: a socket of this process is bound to the address, and one of both has no SO_REUSEPORT.
int bind_listener(int number, sockaddr const* address, socklen_t bytes);
int start_listening(Listener& listener, int backlog);
/// As accept4(2). Waits if the socket blocks.
int accept_session(Listener& listener, sockaddr* address, socklen_t* bytes, int flags);
/// Ends it. The kernel's socket stays open.
void close_listener(Listener& listener);
/// Gives a connecting socket back to the kernel, bound as the program asked.
int release_to_kernel(Listener& listener);

/// True if accept4(2) would not wait.
bool has_waiting(Listener& listener);
/// True if this process accepts at `port`.
bool has_wanted(std::uint16_t port);
void mark_ready_at_port(std::uint16_t port);
void for_each_listener(std::function<void(Listener&)> const& call);
/// Once per port at which this process accepts.
void for_each_wanted_port(std::function<void(Listener&)> const& call);

/// Copies an address into a caller's buffer as accept(2) does. -EFAULT, -EINVAL.
int copy_address(sockaddr_storage const& from, sockaddr* to, socklen_t* bytes);

}  // namespace catena::sockets
