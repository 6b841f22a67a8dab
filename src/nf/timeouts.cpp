// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/timeouts.hpp>

namespace catena::nf {

Status read_timeouts(Config& config, std::initializer_list<TimeoutKey> keys, std::int64_t max_seconds) {
  CATENA_ASSIGN_OR_RETURN(Config section, config.section_or_empty("timeouts"));
  for (TimeoutKey const& timeout : keys) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value,
                            section.integer_or(timeout.key, *timeout.seconds, 1, max_seconds));
    *timeout.seconds = static_cast<std::uint32_t>(value);
  }
  return section.finish();
}

}  // namespace catena::nf
