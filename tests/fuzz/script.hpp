// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::fuzz {

/// The fuzzer's bytes as numbers; zeros after their end.
class Script {
 public:
  explicit Script(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool is_done() const { return bytes_.empty(); }
  std::uint32_t number(std::size_t octets) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < octets; ++i) {
      value = value << 8U | (bytes_.empty() ? 0U : bytes_[0]);
      bytes_ = bytes_.subspan(bytes_.empty() ? 0 : 1);
    }
    return value;
  }
  /// The next `most` bytes, or fewer at the end.
  std::vector<std::uint8_t> take(std::size_t most) {
    const std::size_t count = std::min(most, bytes_.size());
    std::vector<std::uint8_t> taken(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count));
    bytes_ = bytes_.subspan(count);
    return taken;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace catena::fuzz
