// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.hpp"

#include "chain/workers.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace catena::cli {

Result<std::vector<device::DevicePreference>> parse_devices(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) {
      break;
    }
  }
  return device::parse_preferences(names);
}

Result<chain::RunOptions> run_options_of(RunArguments const& arguments, chain::ChainConfig& config) {
  chain::RunOptions options;
  if (!arguments.rx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.rx, chain::parse_rx_option(arguments.rx));
  }
  if (!arguments.tx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.tx, chain::parse_tx_option(arguments.tx));
  }
  if (!arguments.device.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.devices, parse_devices(arguments.device));
  }
  if (!arguments.sync.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.mode, chain::parse_sync_option(arguments.sync));
  }
  options.sync.pushdown = arguments.pushdown != "off";
  if (!arguments.methods.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.methods, chain::parse_methods_option(arguments.methods));
  }
  if (arguments.profile.empty()) {
    options.profiles = chain::ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, chain::load_profile(arguments.profile));
    options.profile_path = arguments.profile;
  }
  options.record_path = arguments.record;
  options.eve_path = arguments.eve;
  options.trace_path = arguments.trace;
  options.new_keys = arguments.new_keys;
  if (!arguments.cores.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.cores, chain::parse_cores(arguments.cores));
  }
  options.workers = arguments.workers;
  CATENA_RETURN_IF_ERROR(chain::apply(options, config));
  const std::size_t stages = config.shards * (config.nfs.size() + 2);  // where each has an rx and a tx
  if (arguments.workers != 0) {
    options.workers = std::min(arguments.workers, static_cast<std::uint32_t>(stages));
  } else if (!options.cores.empty()) {
    options.workers = static_cast<std::uint32_t>(std::min(options.cores.size(), stages));
  } else {
    const auto usable = static_cast<std::uint32_t>(chain::usable_cores().size());
    options.workers = chain::default_workers(config.rx, stages, usable);
  }
  return options;
}

}  // namespace catena::cli
