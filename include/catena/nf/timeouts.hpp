// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace catena::nf {

/// One key of a mapping `timeouts`, and the seconds set by it.
struct TimeoutKey {
  std::string_view key;
  std::uint32_t* seconds;  ///< unchanged if the key is missing
};

/// Reads the mapping `timeouts` of a configuration, each key from 1 to `max_seconds`. Errors: as Config::integer() and
/// Config::finish().
Status read_timeouts(Config& config, std::initializer_list<TimeoutKey> keys, std::int64_t max_seconds);

}  // namespace catena::nf
