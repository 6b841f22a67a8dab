// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/page.hpp"
#include "bench/gnet/results.hpp"

namespace catena::bench {

/// The results as a page, beside what the paper has.
PageText gnet_page(GnetResults const& results);

}  // namespace catena::bench
