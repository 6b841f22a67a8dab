// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "pipeline/isolation/channel.hpp"

#include <cstdint>
#include <vector>

namespace catena::runtime {

/// Adds what an NF in another process has counted since the last call. The process may claim anything, but counts never
/// go down. `seen`: its counts at the last call, empty for a new incarnation.
void add_counts(nf_process::SharedCounts const& of, std::vector<std::uint64_t>& seen, nf::Counters& counters);

}  // namespace catena::runtime
