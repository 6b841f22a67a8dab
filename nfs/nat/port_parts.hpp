// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "mapping_table.hpp"

namespace catena::nat {

/// Divides a range of ports into consecutive parts whose sizes differ by at most one. Immutable.
class PortParts {
 public:
  /// Precondition: `count` is at least 1 and at most the number of ports.
  PortParts(PortRange const& range, std::uint32_t count)
      : first_(range.first), size_(std::uint32_t{range.last} - range.first + 1), count_(count) {}

  /// Precondition: `index` is below the number of parts.
  PortRange part(std::uint32_t index) const {
    return {static_cast<std::uint16_t>(first_ + start_of(index)),
            static_cast<std::uint16_t>(first_ + start_of(index + 1) - 1)};
  }
  /// The part with this port; nullopt if the port is not in the range.
  std::optional<std::uint32_t> part_with(std::uint16_t port) const {
    const std::uint32_t offset = port - first_;  // huge for a port below the range
    if (offset >= size_) {
      return std::nullopt;
    }
    return ((offset + 1) * count_ - 1) / size_;  // the last part starting at or before it
  }

 private:
  std::uint32_t start_of(std::uint32_t index) const { return size_ * index / count_; }

  std::uint32_t first_;
  std::uint32_t size_;
  std::uint32_t count_;
};

}  // namespace catena::nat
