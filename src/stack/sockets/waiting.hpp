// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/select.h>

#include "stack/sockets/deadline.hpp"
#include "stack/sockets/descriptors.hpp"

/// poll(2) and select(2) over descriptors of the stack and of the kernel.
namespace catena::sockets {

/// The true bits of poll(2) of a listener or session; `asked`: poll_state(). 0 of an epoll set.
std::uint32_t state_of(Descriptor& descriptor, std::uint32_t asked);

/// True if one of them is the stack's.
bool has_own(pollfd const* descriptors, nfds_t count);
bool has_own(int count, fd_set const* readable, fd_set const* writable, fd_set const* exceptional);

/// As ppoll(2) and pselect(2). Return the number of ready descriptors, or a negative error.
int poll_all(pollfd* descriptors, nfds_t count, Deadline const& deadline, sigset_t const* mask);
int select_all(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, Deadline const& deadline,
               sigset_t const* mask);

}  // namespace catena::sockets
