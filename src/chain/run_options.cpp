// SPDX-License-Identifier: Apache-2.0
#include "chain/run_options.hpp"

#include "chain/port_kind.hpp"

#include <catena/core/text.hpp>

namespace catena::chain {
namespace {

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

Result<RunOptions> run_options_of(ChainConfig const& config) {
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
  return options;
}

Result<std::optional<SharingOptions>> sharing_of(GivenOptions const& options) {
  ChainConfig chain;
  CATENA_RETURN_IF_ERROR(put_over(options, chain));
  return sharing_options_of(chain);
}

}  // namespace catena::chain
