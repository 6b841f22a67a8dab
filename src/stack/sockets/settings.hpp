// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/port_list.hpp"

namespace catena::sockets {

/// CATENA_STACK and CATENA_STACK_PORTS as they were when the program started: servers change their environment later.
struct Settings {
  char path[108] = {};  ///< of the stack's socket; empty: all calls are the kernel's
  PortList ports;
};
/// Any thread.
Settings const& settings();

}  // namespace catena::sockets
