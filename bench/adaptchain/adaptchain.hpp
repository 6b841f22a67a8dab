// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench adaptchain`: the comparisons of section VI of AdaptChain, on this machine.
namespace catena::bench {

Part adaptchain_part();

}  // namespace catena::bench
