// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/trace.hpp"

#include <span>
#include <string>

namespace catena::chain {

/// The launches of one stage, in the order in which they were submitted.
struct StageTrace {
  std::string stage;
  std::span<const dataplane::LaunchTrace> launches;
};

/// The launches as a JSON object in Google's Trace Event Format, which chrome://tracing and Perfetto
/// (https://ui.perfetto.dev) show. Complete events ("ph": "X") on these tracks, all of one process:
///   NAME           on the host: fill (its first unit was taken .. it was full or due), submit (.. everything was
///                  enqueued), deliver (it was found done .. its units had gone on)
///   NAME device    on the device: to device, kernel, to host. Events of a track must not overlap, and launches do:
///   those
///                  that run beside the first are on tracks NAME device 2, 3 ...
/// `ts` and `dur` are microseconds, from the first unit of the first launch on; `args` have the number of the launch in
/// its stage, from 0, and its packets. No launches: no events. Any thread.
std::string to_chrome_trace(std::span<const StageTrace> stages);

}  // namespace catena::chain
