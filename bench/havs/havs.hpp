// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench havs`: the stack's core with clients that cost nothing, and copy engines alone, as in section V of the
/// HAVS paper. Unmodified programs beside the kernel: bench/havs/nginx.py.
namespace catena::bench {

Part havs_part();

}  // namespace catena::bench
