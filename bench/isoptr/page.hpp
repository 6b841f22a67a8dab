// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/page.hpp"
#include "bench/isoptr/results.hpp"

namespace catena::bench {

/// Results beside G-NET's, with a figure wherever there is something to show.
PageText isoptr_page(IsoPtrResults const& results);

}  // namespace catena::bench
