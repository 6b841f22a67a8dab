// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack/sockets/descriptors.hpp"

namespace catena::sockets {

/// Results are 0 or a negative error of errno.h.

/// A numeric option of the kernel's socket; -1: it has no such option.
int kernel_option(int number, int level, int name);
/// The options with an effect.
Options read_options(int number);
/// Gives the kernel's socket `to` the same values as `from`.
void copy_options(int from, int to);

/// As setsockopt(2) and getsockopt(2). -ENOPROTOOPT: not in the table of options.
int set_option(Session& session, int level, int name, void const* value, socklen_t bytes);
int get_option(Session& session, int level, int name, void* value, socklen_t* bytes);
int set_option(Listener& listener, int level, int name, void const* value, socklen_t bytes);
int get_option(Listener& listener, int level, int name, void* value, socklen_t* bytes);

/// As ioctl(2).
int control(Session& session, unsigned long request, void* argument);
int control(Listener& listener, unsigned long request, void* argument);

}  // namespace catena::sockets
