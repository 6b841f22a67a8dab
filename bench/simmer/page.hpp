// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/page.hpp"
#include "bench/simmer/results.hpp"

namespace catena::bench {

/// The page README.md, beside the figures of the paper. Pure.
PageText simmer_page(SimmerResults const& results);

}  // namespace catena::bench
