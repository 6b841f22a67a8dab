// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/port_numbers.hpp"

namespace catena::lpm {

PortNumbers::PortNumbers(std::span<const Route> routes) : numbers_(std::size_t{1} << 16), ports_(1) {
  for (Route const& route : routes) {
    std::uint16_t& number = numbers_[route.port];
    if (number == 0) {
      number = static_cast<std::uint16_t>(ports_.size());
      ports_.push_back(route.port);
    }
  }
}

}  // namespace catena::lpm
