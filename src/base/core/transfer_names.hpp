// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/transfer.hpp"

#include <string_view>

/// Names of directions and transfer methods in plans, profiles and JSON.
namespace catena {

constexpr std::string_view to_string(Direction direction) { return direction == Direction::kToDevice ? "h2d" : "d2h"; }

constexpr std::string_view to_string(TransferMethod method) {
  constexpr std::string_view kNames[] = {"staged", "strided", "gather"};
  return kNames[static_cast<unsigned>(method)];
}

}  // namespace catena
