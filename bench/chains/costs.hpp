// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/chains.hpp"
#include "bench/chains/reference.hpp"
#include "chain/cost_profile.hpp"
#include "device/device.hpp"
#include "profile/nf_measure.hpp"

#include <cstdint>
#include <vector>

namespace catena::bench {

/// What the NFs of a chain cost with frames of these sizes, with FCS, for about so many seconds; moves by the costs of
/// `profile`. `text` is without the file of associations. `copies`: of the chain, each of which has associations of its
/// own; what the first one's NFs cost is entered for all. Errors: as write_sa(), parse_chain() and measure_nfs().
Result<profile::NfMeasurements> measure_costs(PaperChain const& chain, ChainText text,
                                              std::vector<std::uint32_t> const& wire_bytes, double seconds,
                                              chain::CostProfile const& profile, device::Device& device,
                                              Workplace const& workplace, std::uint32_t copies);

}  // namespace catena::bench
