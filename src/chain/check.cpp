// SPDX-License-Identifier: Apache-2.0
#include "chain/check.hpp"

#include "chain/data_path.hpp"
#include "chain/diagnostics.hpp"
#include "chain/instances.hpp"
#include "chain/layout.hpp"
#include "chain/named_files.hpp"
#include "chain/workers.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

namespace catena::chain {

Status check(ChainConfig config, RunOptions const& options, TryOut const& try_out, nf::Registry const& registry,
             std::vector<RefusedRules>& refused, std::vector<NamedFile>* files, std::vector<std::string>* warnings) {
  Diagnostics diagnostics;
  config.shards = parallelism_of(config, options, static_cast<std::uint32_t>(usable_cores().size())).shards;
  diagnostics.add(check_shards(config, config.shards));
  const nf::NamedFiles of_nfs;
  std::vector<std::unique_ptr<nf::Instance>> instances;
  std::vector<KeysOfNf> keys;
  for (NfConfig const& entry : config.nfs) {
    if (!entry.plugin.empty()) {
      if (try_out) {
        diagnostics.add(try_out(entry, config));
      }
      instances.push_back(stand_in_for_plugin(entry));
      continue;
    }
    const std::size_t named_before = of_nfs.files().size();
    const auto keys_before = static_cast<std::ptrdiff_t>(of_nfs.keys().size());
    instances.push_back(
        diagnostics.take(make_instance(entry, registry, false, ends_of(config.rx, config.tx), {0, config.shards})));
    keys.push_back({entry.name, entry.position, {of_nfs.keys().begin() + keys_before, of_nfs.keys().end()}});
    if (entry.isolation == Isolation::kProcess) {
      diagnostics.add(check_written_for_process(std::span(of_nfs.files()).subspan(named_before)));
    }
    if (instances.back() == nullptr) {
      continue;
    }
    if (auto const* refusing = dynamic_cast<nf::Refusing const*>(&instances.back()->nf());
        refusing != nullptr && refusing->applied_rules() + refusing->refusals().size() > 0) {
      refused.push_back({entry.name, refusing->applied_rules(), refusing->refusals()});
    }
    if (warnings != nullptr) {
      std::ranges::move(warnings_of(*instances.back()), std::back_inserter(*warnings));
    }
  }
  const std::vector<NamedFile> named = named_files(config, options, of_nfs.files());
  diagnostics.add(check_files(named));
  diagnostics.add(check_keys(keys));
  diagnostics.add(check_new_keys(keys, options.new_keys));
  if (files != nullptr) {
    *files = named;
  }
  // a plan as a device that can do everything would have it; this also opens the capture
  plan::PlanInput input = diagnostics.take(plan_input(config, options.sync));
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  for (std::size_t i = 0; i < instances.size(); ++i) {
    diagnostics.add(add_nf(config.nfs[i], *instances[i], input).status());
  }
  const std::vector<nf::Instance*> all = pointers_to(instances);
  diagnostics.add(data_path_of(config, options, all).status());
  diagnostics.add(flow_limits(config, unit_packets_of(config.tuning)).status());
  add_ways(config, all, input);
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  const bool is_planned = std::any_of(config.nfs.begin(), config.nfs.end(),
                                      [](NfConfig const& entry) { return entry.on == plan::Processor::kGpu; });
  return is_planned ? plan::make_plan(input).status() : absl::OkStatus();
}

}  // namespace catena::chain
