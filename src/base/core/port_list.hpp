// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/decimal.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace catena {

/// The ports of the TCP stack, as a list ("80,443") or "all". Port 0 never is: the kernel chooses its number.
/// Needs nothing but libc: it is read before main() of any program.
class PortList {
 public:
  static constexpr int kMaxPorts = 64;

  /// False: `text` is no list; then no port is in it. Null is the empty list.
  bool parse(char const* text) {
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
      const std::uint64_t port = parse_decimal(word, std::numeric_limits<std::uint16_t>::max()).value_or(0);
      if (port == 0 || count_ == kMaxPorts) {
        *this = PortList();
        return false;
      }
      ports_[count_++] = static_cast<std::uint16_t>(port);
    }
    return true;
  }
  bool contains(std::uint16_t port) const {
    bool found = has_all_ && port != 0;
    for (int i = 0; i < count_; ++i) {
      found = found || ports_[i] == port;
    }
    return found;
  }

 private:
  std::uint16_t ports_[kMaxPorts] = {};
  int count_ = 0;
  bool has_all_ = false;
};

}  // namespace catena
