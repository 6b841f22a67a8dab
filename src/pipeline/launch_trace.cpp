// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_trace.hpp"

namespace catena::runtime {

void LaunchTrace::add(LaunchTimeline const& launch, std::int64_t ready_ns, std::int64_t delivered_ns,
                      Result<std::optional<kernel::LaunchTimes>> const& on_device) {
  const auto add = [&](const char* what, std::uint32_t track, std::int64_t begin_ns, std::int64_t end_ns) {
    log_->add({what, track, launch.number, launch.packets, begin_ns, end_ns});
  };
  add("fill", 0, launch.first_unit_ns, launch.submit_begin_ns);
  add("submit", 0, launch.submit_begin_ns, launch.submit_end_ns);
  add("deliver", 0, ready_ns, delivered_ns);
  if (!on_device.ok()) {
    log_->fail(on_device.status());
  } else if (std::optional<kernel::LaunchTimes> const& times = *on_device) {
    const std::uint32_t track = launch.lane + 1;
    add("to device", track, times->begin_ns, times->moved_in_ns);
    add("kernel", track, times->moved_in_ns, times->computed_ns);
    add("to host", track, times->computed_ns, times->moved_back_ns);
  }
}

}  // namespace catena::runtime
