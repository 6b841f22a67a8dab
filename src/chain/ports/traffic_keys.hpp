// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/key_fields.hpp"

#include <cstdint>
#include <limits>

/// The keys that kinds of artificial traffic have in common. `Traffic`: their configuration in `io`.
namespace catena::chain {

template <typename Traffic>
inline constexpr Key kRateKey{.name = "rate",
                              .kind = KeyKind::kInteger,
                              .help = "packets per second; 0: as fast as the chain takes them",
                              .fallback = "0",
                              .maximum = 1'000'000'000,
                              .into = into<&Traffic::packets_per_s>};
template <typename Traffic>
inline constexpr Key kSeedKey{.name = "seed",
                              .kind = KeyKind::kInteger,
                              .help = "the same seed gives the same packets",
                              .fallback = "1",
                              .maximum = std::numeric_limits<std::int64_t>::max(),
                              .into = into<&Traffic::seed>};
template <typename Traffic>
inline constexpr Key kCountKey{.name = "count",
                               .kind = KeyKind::kInteger,
                               .help = "packets in all; 0: until the run is stopped",
                               .fallback = "0",
                               .maximum = std::numeric_limits<std::int64_t>::max(),
                               .into = into<&Traffic::count>};

}  // namespace catena::chain
