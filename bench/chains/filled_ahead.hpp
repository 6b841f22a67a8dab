// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace catena::bench {

/// A source for chains that need byte-exact packets, such as decrypting ones. It replays `frames` round-robin.
/// `threads` threads write each whole frame ahead of receive(), bypassing the caches as a network card does. One core
/// writes about 50 Gbps. Arrival times are those of 10 million packets/s. `count` 0: endless. The pool must outlive the
/// source. The source's destructor returns filled slots that were not received to the pool. Errors: InvalidArgument for
/// no frames, an empty or too long frame, or no thread.
Result<std::unique_ptr<io::Source>> make_filled_ahead(std::vector<std::vector<std::uint8_t>> const& frames,
                                                      std::uint32_t threads, std::uint64_t count);

}  // namespace catena::bench
