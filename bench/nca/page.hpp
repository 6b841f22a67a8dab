// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/page.hpp"
#include "bench/nca/nca.hpp"

#include <nca/nca.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

/// Name and text of the files that show results beside the draft's: README.md, and the SVGs of what there is to show.
PageText nca_page(NcaResults const& results);
/// Everything but the time lines, as one JSON object.
std::string to_json(NcaResults const& results);

/// About eight buffers around the time `middle_ns`: their rows, one for each buffer in flight at a time, with boxes in
/// microseconds of the kinds "to device", "kernel", "to host"; and how many microseconds they take. No buffers: no
/// rows.
std::pair<std::vector<TimeRow>, double> nca_timeline(std::span<const nca_times> buffers, std::int64_t middle_ns);

}  // namespace catena::bench
