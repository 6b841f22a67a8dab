// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "functions/lpm/route_file.hpp"

namespace catena::lpm {

/// The distinct ports of a route table, numbered from 1 in the order of their first route: the next hops in table
/// entries. Number 0 means "no route".
class PortNumbers {
 public:
  explicit PortNumbers(std::span<const Route> routes);
  std::uint16_t number_of(std::uint16_t port) const { return numbers_[port]; }
  /// By number; entry 0 is unused.
  std::vector<std::uint16_t> const& ports() const { return ports_; }

 private:
  std::vector<std::uint16_t> numbers_;  ///< by port, 0 if no route uses it
  std::vector<std::uint16_t> ports_;
};

}  // namespace catena::lpm
