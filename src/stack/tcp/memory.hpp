// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// The memory of lwIP: from libc, counted and limited. lwIP drops a frame without memory, or the caller tries again.
namespace catena::stack {

struct LwipMemory {
  std::size_t blocks = 0;
  std::size_t bytes = 0;
  std::size_t limit = ~std::size_t{0};  ///< bytes; allocations above it fail
};
/// That of this process. Thread rule: Tcp's thread.
LwipMemory& lwip_memory();

}  // namespace catena::stack
