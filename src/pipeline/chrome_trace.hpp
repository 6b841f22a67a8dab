// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"

#include <span>
#include <string>

namespace catena::runtime {

/// Time spans of one stage.
struct StageTrace {
  std::string name;
  trace::SpanLog const* log;
};

/// The spans as a JSON object in Google's Trace Event Format, for chrome://tracing and Perfetto
/// (https://ui.perfetto.dev). Complete events ("ph": "X") on these tracks, all of one process:
///   NAME           on the host: `work`, a poll that found work; of an NF on a device fill, submit, deliver
///   NAME device    on the device: to device, kernel, to host. Concurrent launches are on tracks NAME device 2, 3 ...
/// `ts` and `dur` are microseconds since the first span; `args` have the number of the launch or poll in its stage,
/// from 0, and its packets. No spans: no events. Any thread.
std::string to_chrome_trace(std::span<const StageTrace> stages);

}  // namespace catena::runtime
