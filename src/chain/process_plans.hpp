// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"

#include <catena/core/status.hpp>

#include "nf/registry.hpp"
#include "plan/planner.hpp"

#include <string>
#include <vector>

namespace catena::chain {

struct ProcessPlan {
  std::string process;  ///< "process of NF 'fw'" or "process of group 'dpi'"
  plan::Comparison plans;
};

/// The plans made by NF processes for their NFs on the gpu, in chain order: with the built-in costs and a mix of sizes,
/// because they know no others. Processes with a plug-in are left out: only they know its hints. Opens no port and no
/// device. Errors: as plan_chain().
Result<std::vector<ProcessPlan>> plan_processes(ChainConfig const& config, RunOptions const& options,
                                                nf::Registry const& registry);

}  // namespace catena::chain
