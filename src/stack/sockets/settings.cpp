// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/settings.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace catena::sockets {
namespace {

Settings read_once;
std::atomic<bool> is_read{false};

// before main(): needs nothing of other libraries but libc
[[gnu::constructor]] void read_settings() {
  if (is_read.load(std::memory_order_acquire)) {
    return;
  }
  char const* path = std::getenv("CATENA_STACK");
  if (path != nullptr && std::strlen(path) < sizeof read_once.path &&
      read_once.ports.parse(std::getenv("CATENA_STACK_PORTS"))) {
    std::strcpy(read_once.path, path);
  }
  is_read.store(true, std::memory_order_release);
}

}  // namespace

Settings const& settings() {
  read_settings();
  return read_once;
}

}  // namespace catena::sockets
