// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hostcopy/engine.hpp"
#include "chain/copy_profile.hpp"

namespace catena::profile {

struct CopyMeasureOptions {
  std::vector<std::uint32_t> sizes = {1024, 4096, 16384, 32768, 65536, 262144};  ///< bytes of a copy
  double seconds = 0.2;                                                          ///< of each engine and size
  std::size_t memory_bytes = std::size_t{64} << 20U;  ///< of sources, and of targets: more than the caches have
  std::uint32_t poll_at = 10;                         ///< copies in flight from which on the engine is polled
};

struct EngineCopies {
  hostcopy::EngineKind kind;
  Status status;                         ///< why it could not be measured
  std::vector<chain::CopyPoint> points;  ///< by size, ascending
};
/// From where on an engine takes less time of the CPU than the CPU's own copies.
struct ProposedThreshold {
  std::string engine;
  std::uint32_t bytes;
};

/// Measures each of `kinds` on the calling thread, which should be alone on its core; compares the bytes of every
/// engine once. A failing engine has its error in `status`. Unavailable: no memory for the copies.
Result<std::vector<EngineCopies>> measure_copies(std::span<const hostcopy::EngineKind> kinds,
                                                 CopyMeasureOptions const& options,
                                                 std::function<void(std::string_view engine)> const& begins);

/// The least size from which on one engine takes less time of the CPU than every engine of the CPU, at all greater
/// sizes too; of several engines the one with the least size. nullopt: no such size. Engines for tests do not count.
std::optional<ProposedThreshold> propose_threshold(std::span<const EngineCopies> engines);

}  // namespace catena::profile
