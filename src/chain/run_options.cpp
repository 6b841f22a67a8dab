// SPDX-License-Identifier: Apache-2.0
#include "chain/run_options.hpp"

#include "chain/port_kind.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::chain {
namespace {

std::uint32_t cores_for(RunOptions const& options) {
  if (options.workers != 0) {
    return options.workers;
  }
  return static_cast<std::uint32_t>(options.cores.empty() ? usable_cores().size() : options.cores.size());
}

Result<std::optional<SharingOptions>> sharing_options_of(ChainConfig const& config) {
  SharingConfig const& sharing = config.run.sharing;
  if (sharing.mode) {
    CATENA_RETURN_IF_ERROR(check_one_device(config));
    return SharingOptions{*sharing.mode, sharing.parts, sharing.compute_units};
  }
  return sharing.parts || sharing.compute_units != 0
             ? absl::InvalidArgumentError(concat(
                   sharing.position, ": 'parts' and 'compute_units' of 'sharing' take its 'mode', which is --share"))
             : Result<std::optional<SharingOptions>>(std::nullopt);
}

}  // namespace

bool hides_order(ChainConfig const& config, RunOptions const& options) {
  return config.tx.target.empty() && options.record_path.empty() && options.eve_path.empty() && options.opens_rx &&
         options.opens_tx;
}

bool may_divide_traffic(ChainConfig const& config, RunOptions const& options) {
  return config.rx.kind->is_artificial && config.tx.kind == &kNullPort && hides_order(config, options);
}

Status check_one_device(ChainConfig const& config) {
  if (config.devices.size() == 1) {
    return absl::OkStatus();
  }
  std::string const& position = config.run.sharing.position;
  return absl::InvalidArgumentError(concat(position.empty() ? config.source.file : position,
                                           ": 'sharing' is for the NFs of one device, and the chain has ",
                                           config.devices.size(), "; name one, or leave out --share and 'sharing'"));
}

Status apply(RunOptions const& options, ChainConfig& config) {
  if (config.shards == kAutoShards) {
    config.shards = auto_shards(config, may_divide_traffic(config, options), cores_for(options));
  }
  if (config.shards < config.devices.size()) {
    return absl::InvalidArgumentError(concat(config.source.file, ": ", config.devices.size(),
                                             " devices, and each has a shard at least; write `shards: auto`, or ",
                                             config.devices.size(), " or more"));
  }
  return absl::OkStatus();
}

Result<RunOptions> run_options_of(ChainConfig& config) {
  RunConfig const& run = config.run;
  RunOptions options;
  options.record_path = run.outputs.record.path;
  options.eve_path = run.outputs.eve.path;
  options.trace_path = run.outputs.trace.path;
  options.sync.mode = run.transfers.mode;
  options.sync.pushdown = run.transfers.pushdown;
  options.sync.methods = run.transfers.methods;
  if (run.transfers.profile.path.empty()) {
    options.profiles = ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, load_profile(run.transfers.profile.path));
    options.profile_path = run.transfers.profile.path;
  }
  CATENA_ASSIGN_OR_RETURN(options.sharing, sharing_options_of(config));
  options.cores = run.cores;
  options.workers = run.workers;
  CATENA_RETURN_IF_ERROR(apply(options, config));
  const auto stages =  // where each has an rx and a tx
      static_cast<std::uint32_t>(config.shards * (config.nfs.size() + 2));
  if (run.workers != 0) {
    options.workers = std::min(run.workers, stages);
  } else if (!run.cores.empty()) {
    options.workers = std::min(static_cast<std::uint32_t>(run.cores.size()), stages);
  } else {
    options.workers = default_workers(config.rx, stages, static_cast<std::uint32_t>(usable_cores().size()));
  }
  return options;
}

Result<std::optional<SharingOptions>> sharing_of(GivenOptions const& options) {
  ChainConfig chain;
  CATENA_RETURN_IF_ERROR(put_over(options, chain));
  return sharing_options_of(chain);
}

}  // namespace catena::chain
