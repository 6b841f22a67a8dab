// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include <cstddef>

namespace catena {

/// Overwrites memory that held a key with zeros, also where nobody reads it again and a compiler would leave that out.
/// Of no bytes `memory` may be null.
inline void wipe(void* memory, std::size_t bytes) {
  if (bytes != 0) {
    ::explicit_bzero(memory, bytes);
  }
}

}  // namespace catena
