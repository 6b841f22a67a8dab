// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench nca`: the measurement of draft-perumal-nfvrg-nfv-compute-acceleration-00 with libnca, on this machine.
namespace catena::bench {

/// A cell also fails if its results differ from Hyperscan's.
Part nca_part();

}  // namespace catena::bench
