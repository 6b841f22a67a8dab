// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include <cstddef>

namespace catena {

/// Overwrites memory that held a key with zeros. Not removed by the compiler, even if the memory is not read again.
/// `memory` may be null if `bytes` is 0.
inline void wipe(void* memory, std::size_t bytes) {
  if (bytes != 0) {
    ::explicit_bzero(memory, bytes);
  }
}

}  // namespace catena
