// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <span>

#include "plan/chain_needs.hpp"

namespace catena::plan {

/// Fills in the reasons of each step of a plan that is correct for `chain`.
void add_reasons(std::span<const NfNeeds> chain, std::span<const PlanEdge> edges, Plan& plan);

}  // namespace catena::plan
