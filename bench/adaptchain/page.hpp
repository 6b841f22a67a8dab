// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/results.hpp"
#include "bench/common/page.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

/// Results beside the paper's, with a figure wherever there is something to show. `wire_bytes`: the sizes, in the order
/// of the axes.
PageText paper_page(Results const& results, std::vector<std::uint32_t> const& wire_bytes);

}  // namespace catena::bench
