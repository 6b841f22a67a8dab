// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <vector>

/// The NFs of this tree as planner inputs, and AdaptChain's five chains of them (section VI). The hints are copies of
/// nfs/*; the hints of prepare() and complete() are separate.
namespace catena::plan::testing {

PlacedNf firewall(Processor on);
PlacedNf nids(Processor on);
PlacedNf encrypt(Processor on);
PlacedNf decrypt(Processor on);
PlacedNf router(Processor on);
PlacedNf nat(Processor on);
PlacedNf lb(Processor on);
PlacedNf monitor(Processor on);

/// C1 firewall(C) decrypt(G) nids(G); C2 nids(G) nat(C) encrypt(G); C3 decrypt(G) lb(C) nids(G);
/// C4 firewall(G) decrypt(G) nids(G) router(C); C5 firewall(G) monitor(C) nat(G) encrypt(G) nids(G).
std::vector<PlacedNf> chain_c(int number);

}  // namespace catena::plan::testing
