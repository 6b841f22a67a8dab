// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::sockets {

/// The ports that are the stack's, as a list ("80,443") or "all". Port 0 never is: the kernel chooses its number.
class PortList {
 public:
  /// False: `text` is no list; then no port is in it. Null is the empty list.
  bool parse(char const* text);
  bool contains(std::uint16_t port) const;

 private:
  static constexpr int kMaxPorts = 64;
  std::uint16_t ports_[kMaxPorts] = {};
  int count_ = 0;
  bool has_all_ = false;
};

/// CATENA_STACK and CATENA_STACK_PORTS as they were when the program started: servers change their environment later.
struct Settings {
  char path[108] = {};  ///< of the stack's socket; empty: all calls are the kernel's
  PortList ports;
};
/// Any thread.
Settings const& settings();

}  // namespace catena::sockets
