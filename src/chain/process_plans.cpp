// SPDX-License-Identifier: Apache-2.0
#include "chain/process_plans.hpp"

#include "chain/ports/generator.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::chain {
namespace {

/// The chain that the process of these NFs runs.
ChainConfig chain_of_process(ChainConfig const& config, NfGroup const& group) {
  ChainConfig inside = config;
  inside.rx = generated({.packet_bytes = 0});
  inside.devices.resize(1);
  inside.shards = 1;
  inside.nfs.erase(inside.nfs.begin() + static_cast<std::ptrdiff_t>(group.end), inside.nfs.end());
  inside.nfs.erase(inside.nfs.begin(), inside.nfs.begin() + static_cast<std::ptrdiff_t>(group.first));
  for (NfConfig& nf : inside.nfs) {
    nf.isolation = Isolation::kNone;
  }
  return inside;
}

}  // namespace

Result<std::vector<ProcessPlan>> plan_processes(ChainConfig const& config, RunOptions const& options,
                                                nf::Registry const& registry) {
  RunOptions of_process = options;
  of_process.sync.profile = CostProfile::built_in();
  std::vector<ProcessPlan> plans;
  for (NfGroup group{}; group.first < config.nfs.size(); group.first = group.end) {
    group = group_of(config, group.first);
    NfConfig const& first = config.nfs[group.first];
    const ChainConfig inside = chain_of_process(config, group);
    const bool is_on_gpu =
        std::ranges::any_of(inside.nfs, [](NfConfig const& nf) { return nf.on == plan::Processor::kGpu; });
    const bool is_known = std::ranges::all_of(inside.nfs, [](NfConfig const& nf) { return nf.plugin.empty(); });
    if (first.isolation != Isolation::kProcess || !is_on_gpu || !is_known) {
      continue;
    }
    ProcessPlan& plan = plans.emplace_back();
    plan.process = first.group.empty() ? concat("process of NF '", first.name, "'")
                                       : concat("process of group '", first.group, "'");
    CATENA_ASSIGN_OR_RETURN(ChainPlan chain, plan_chain(inside, of_process, registry));
    plan.plans = std::move(chain.plans);
  }
  return plans;
}

}  // namespace catena::chain
