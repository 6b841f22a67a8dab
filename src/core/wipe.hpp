// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include <cstddef>

namespace catena {

/// Overwrites memory that held a key with zeros, also where nobody reads it again and a compiler would leave that out.
inline void wipe(void* memory, std::size_t bytes) { ::explicit_bzero(memory, bytes); }

}  // namespace catena
