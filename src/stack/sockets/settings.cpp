// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/settings.hpp"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

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

bool PortList::parse(char const* text) {
  *this = PortList();
  std::string_view rest = text == nullptr ? "" : text;
  if (rest == "all") {
    has_all_ = true;
    return true;
  }
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), port);
    if (error != std::errc() || end != word.data() + word.size() || port == 0 || count_ == kMaxPorts) {
      *this = PortList();
      return false;
    }
    ports_[count_++] = port;
  }
  return true;
}

bool PortList::contains(std::uint16_t port) const {
  bool found = has_all_ && port != 0;
  for (int i = 0; i < count_; ++i) {
    found = found || ports_[i] == port;
  }
  return found;
}

Settings const& settings() {
  read_settings();
  return read_once;
}

}  // namespace catena::sockets
