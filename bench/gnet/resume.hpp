// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/gnet/results.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace catena::bench {

/// The cells that results.json of an output folder holds, but for time lines and parts, with what they were measured
/// with; NFs are measured again. Errors: NotFound; InvalidArgument where it is no results.json of this benchmark.
Result<GnetResults> read_gnet_results(std::string const& path);

/// Puts what `earlier` measured of it in the place of `wanted`: a cell with all modes and as many repeats, without an
/// error. Whether there is such a one.
bool take_over(std::vector<GnetCell> const& earlier, std::uint32_t repeats, GnetCell& wanted);

/// FailedPrecondition where `earlier` is of another commit, device or way to divide it, or was measured with other
/// options.
Status check_same(GnetResults const& earlier, GnetResults const& now);

}  // namespace catena::bench
