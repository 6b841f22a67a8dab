// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace catena::bench {

/// A source for chains that only know what to do with packets that are right to the last byte, as decryption: `frames`
/// in turn, each written whole past the caches, as a network card does, by `threads` threads that work ahead of
/// receive(). One core writes what a link of some 50 Gbps brings. Arrival times are those of 10 million packets a
/// second. `count` 0: without end. Slots that were filled and not received go back to the pool, which outlives the
/// source, with the source. Errors: InvalidArgument for no frame, an empty or too long one, or no thread.
Result<std::unique_ptr<io::Source>> make_filled_ahead(std::vector<std::vector<std::uint8_t>> const& frames,
                                                      std::uint32_t threads, std::uint64_t count);

}  // namespace catena::bench
