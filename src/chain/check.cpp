// SPDX-License-Identifier: Apache-2.0
#include "chain/check.hpp"

#include "chain/findings.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace catena::chain {

Status check(ChainConfig config, RunOptions const& options, nf::Registry const& registry) {
  CATENA_RETURN_IF_ERROR(start_eal({}, {}));
  Findings findings;
  const nf::NamedFiles of_nfs;
  std::vector<std::unique_ptr<nf::Instance>> instances;
  for (NfConfig const& entry : config.nfs) {
    Result<std::unique_ptr<nf::Instance>> instance = make_instance(entry, registry, false);
    findings.add(instance.status());
    if (instance.ok()) {
      instances.push_back(std::move(instance).value());
    }
  }
  findings.add(check_files(named_files(config, options, of_nfs.files())));
  config.rx = options.rx.value_or(config.rx);
  config.tx = options.tx.value_or(config.tx);
  if (config.rx.kind == PortKind::kPcap && !dataplane::is_stream(config.rx.target)) {
    findings.add(dataplane::sample_capture(config.rx.target, 1).status());
  }
  CATENA_RETURN_IF_ERROR(findings.status());
  // as a device would make it
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input, plan_input(config, options.sync));
  for (std::size_t i = 0; i < instances.size(); ++i) {
    findings.add(add_nf(config.nfs[i], *instances[i], input).status());
  }
  CATENA_RETURN_IF_ERROR(findings.status());
  const bool is_planned = std::any_of(config.nfs.begin(), config.nfs.end(),
                                      [](NfConfig const& entry) { return entry.on == Placement::kGpu; });
  return is_planned ? plan::make_plan(input).status() : absl::OkStatus();
}

}  // namespace catena::chain
