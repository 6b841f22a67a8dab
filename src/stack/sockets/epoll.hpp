// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include "stack/sockets/deadline.hpp"
#include "stack/sockets/descriptors.hpp"

/// epoll(7) for descriptors of the stack. The kernel's instance stays, for the others; of ours it has the attachment's
/// descriptor alone.
namespace catena::sockets {

/// As epoll_ctl(2) for `target`, a session or listener. Returns 0 or a negative error.
int change_watch(int epoll, int operation, Descriptor& target, epoll_event const* event);
/// As epoll_pwait(2). Returns the number of events, or a negative error.
int wait_for_watches(EpollSet& set, epoll_event* events, int most, Deadline const& deadline, sigset_t const* mask);
/// Before close(2) of an epoll instance.
void close_epoll(EpollSet& set);

/// The state of `descriptor` may have changed.
void mark_ready(Descriptor& descriptor);
/// Takes `descriptor` out of all sets, or empties a set.
void drop_watches(Descriptor& descriptor);

}  // namespace catena::sockets
