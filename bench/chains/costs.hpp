// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/chains.hpp"
#include "bench/chains/reference.hpp"
#include "chain/cost_profile.hpp"
#include "gpu/device/device.hpp"
#include "profile/nf_measure.hpp"

#include <cstdint>
#include <vector>

namespace catena::bench {

/// Measures the NF costs of a chain with frames of the sizes `wire_bytes`, with FCS, for about `seconds`. Transfers
/// cost as in `profile`. `text` has no SA file. `copies`: copies of the chain, each with its own SAs; the costs of the
/// first copy's NFs are recorded for all. Errors: as write_sa(), parse_chain() and measure_nfs().
Result<profile::NfMeasurements> measure_costs(PaperChain const& chain, ChainText const& text,
                                              std::vector<std::uint32_t> const& wire_bytes, double seconds,
                                              chain::CostProfile const& profile, device::Device& device,
                                              Workplace const& workplace, std::uint32_t copies);

}  // namespace catena::bench
